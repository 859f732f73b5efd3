"""Files that never leave with a reply: the gateway's own, those made for secrets, those that hold one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.privatefiles import (
    CONFIGURATION,
    FOR_SECRETS,
    HOLDS_SECRET,
    STATE,
    private_content,
    private_place,
)

HOME, STATE_DIR = "/home/ann", "/home/ann/.openclaw"
CONFIG = f"{STATE_DIR}/openclaw.json"
KNOWN = frozenset(("gateway-token-0123456789",))
SURE_TOKEN = "ghp_0123456789abcdefABCDEF0123456789abcd"


def place(path: str, workspace: str = HOME, config: str = CONFIG) -> str | None:
    return private_place(f"{workspace}/{path}", workspace=workspace, state_dir=STATE_DIR, config_path=config)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (".openclaw/openclaw.json", CONFIGURATION),
        (".openclaw/openclaw.json.bak", CONFIGURATION),
        (".openclaw/openclaw.sqlite", STATE),
        (".openclaw/logs/gateway.jsonl", STATE),
        (".openclaw/workspace/notes.md", STATE),
        ("copies/OpenClaw.json", STATE),
        ("copies/openclaw.sqlite-wal", STATE),
        ("client.sqlite", STATE),
        (".env", FOR_SECRETS),
        ("project/.ENV", FOR_SECRETS),
        (".env.production", FOR_SECRETS),
        (".ssh/known_hosts", FOR_SECRETS),
        ("old/.SSH/notes/a.txt", FOR_SECRETS),
        (".aws/config", FOR_SECRETS),
        ("keys/id_ed25519", FOR_SECRETS),
        ("keys/server.P12", FOR_SECRETS),
        ("vault.kdbx", FOR_SECRETS),
        (".netrc", FOR_SECRETS),
    ],
)
def test_what_stays_by_its_place(path: str, reason: str) -> None:
    assert place(path) == reason


@pytest.mark.parametrize(
    "path",
    [
        "report.pdf", ".openclawish/a.txt", "env", "my.env.txt", ".environment", ".env.example",
        ".env.sample", ".env.template", ".env.dist", "keys/id_ed25519.pub", "slides.key", "server.pem",
        "ssh/a", "p12", "my-openclaw.json",
    ],
)  # fmt: skip
def test_what_may_leave_by_its_place(path: str) -> None:
    assert place(path) is None


def test_a_workspace_below_the_state_is_open_and_the_state_itself_is_not() -> None:
    inside = f"{STATE_DIR}/workspace"
    assert place("notes.md", inside) is None and place("a/.env", inside) == FOR_SECRETS
    assert place("notes.md", STATE_DIR) == STATE and place("workspace/notes.md", STATE_DIR) == STATE
    # Only what lies below the workspace is looked at, not the way to it.
    assert place("notes.md", "/home/ann/.ssh/room") is None


def test_the_configuration_may_lie_anywhere() -> None:
    config = f"{HOME}/etc/house.json5"
    assert place("etc/house.json5", config=config) == CONFIGURATION
    assert place("etc/house.json5.bak.1", config=config) == CONFIGURATION
    assert place("etc/house.json5x", config=config) is None
    bare = private_place("/w/a.txt", workspace="/w", state_dir="", config_path="")
    assert bare is None, "without a state directory nothing is below it"
    assert private_place("/state/a", workspace="/", state_dir="/state/", config_path="") == STATE


@pytest.mark.spec("TRX-11")
@pytest.mark.parametrize(
    "data",
    [
        b"url: gateway-token-0123456789\n",
        f"export TOKEN={SURE_TOKEN}".encode(),
        b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
        b"\0\1\2 gateway-token-0123456789",
        b"\xff\xfe broken gateway-token-0123456789",
    ],
)
def test_what_stays_by_its_content(data: bytes) -> None:
    assert private_content(data, KNOWN) == HOLDS_SECRET


@pytest.mark.spec("TRX-11")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"a plain text about tokens and passwords",
        b"password = hunter2 is what a manual says",
        b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
        b"-----BEGIN RSA PUBLIC KEY-----\nMIIB\n-----END RSA PUBLIC KEY-----\n",
        b"\0" + SURE_TOKEN.encode(),  # no text: only what is known counts
    ],
)
def test_what_may_leave_by_its_content(data: bytes) -> None:
    assert private_content(data, KNOWN) is None


@pytest.mark.spec("TRX-11")
@given(st.integers(0, 3 * 65_536), st.sampled_from((SURE_TOKEN, *KNOWN)))
@settings(max_examples=100, deadline=None)
def test_a_secret_is_found_wherever_it_stands(before: int, secret: str) -> None:
    data = f"{'x ' * (before // 2)}{' ' * (before % 2)}{secret} and more".encode()
    assert private_content(data, KNOWN) == HOLDS_SECRET
    assert private_content(data.replace(secret.encode(), b"nothing"), KNOWN) is None
