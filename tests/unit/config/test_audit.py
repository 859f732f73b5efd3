"""What a configuration gives away: each finding with its severity, its fix, and nothing where all is well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openclaw.config.audit import Finding, audit_config, is_open
from openclaw.config.load import load

GOOD = "kX3-9vQ2_mZ7pLw8RtY5-cB1nD6sF4gH0jK2eU8aI3o"


def audit(config: Any, tmp_path: Path, **env: str) -> tuple[Finding, ...]:
    path = tmp_path / "openclaw.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    loaded = load(path, {"HOME": str(tmp_path)} | env)
    assert loaded.problems == (), loaded.problems
    return audit_config(loaded)


def checks(findings: tuple[Finding, ...]) -> dict[str, str]:
    return {one.check: one.severity for one in findings}


def test_a_default_config_has_nothing_but_a_word_about_commands(tmp_path: Path) -> None:
    assert checks(audit({}, tmp_path)) == {"tools.exec": "info"}
    quiet = {"gateway": {"auth": {"token": GOOD}}, "tools": {"deny": ["group:runtime"]}}
    assert audit(quiet, tmp_path) == ()
    boxed = {"agents": {"defaults": {"sandbox": {"mode": "all"}}}}
    assert audit(boxed, tmp_path) == ()


@pytest.mark.parametrize(
    ("auth", "bind", "expected"),
    [
        ({"mode": "none"}, "loopback", {"gateway.auth": "warn"}),
        ({"token": "a" * 40}, "loopback", {"gateway.auth.token": "warn"}),
        ({"token": GOOD[:23]}, "lan", {"gateway.bind": "warn", "gateway.auth.token": "critical"}),
        ({"token": GOOD[:24]}, "lan", {"gateway.bind": "warn"}),
        ({"password": GOOD[:11]}, "loopback", {"gateway.auth.password": "warn"}),
        ({"password": GOOD[:12]}, "loopback", {}),
        ({"mode": "password", "password": GOOD, "token": "short"}, "loopback", {}),
        ({"token": "abcdefg" * 5}, "loopback", {"gateway.auth.token": "warn"}),
        ({"token": "abcdefgh" * 5}, "loopback", {}),
    ],
)
def test_who_reaches_the_gateway(auth: Any, bind: str, expected: dict[str, str], tmp_path: Path) -> None:
    findings = audit({"gateway": {"auth": auth, "bind": bind}, "tools": {"deny": ["exec"]}}, tmp_path)
    assert checks(findings) == expected
    for one in findings:
        assert one.fix and not one.fixed
        assert not any(secret in one.detail + one.fix for secret in auth.values() if len(secret) > 5)


def test_pages_and_names_for_everybody(tmp_path: Path) -> None:
    gateway = {"controlUi": {"allowedOrigins": ["*"]}, "allowedHosts": ["*"]}
    found = checks(audit({"gateway": gateway, "tools": {"deny": ["exec"]}}, tmp_path))
    assert found == {"gateway.controlUi.allowedOrigins": "critical", "gateway.allowedHosts": "warn"}
    named = {"controlUi": {"allowedOrigins": ["https://x.org"]}, "allowedHosts": ["x.org"]}
    assert audit({"gateway": named, "tools": {"deny": ["exec"]}}, tmp_path) == ()


def test_open_doors_and_what_stands_behind_them(tmp_path: Path) -> None:
    config = {
        "channels": {
            "telegram": {
                "dmPolicy": "open",
                "allowFrom": ["*"],
                "accounts": {"work": {"groupPolicy": "open"}},
            },
            "irc": {"dmPolicy": "pairing"},
        }
    }
    findings = audit(config, tmp_path)
    assert checks(findings) == {
        "channels.dmPolicy": "critical", "channels.groupPolicy": "warn", "tools.exec": "warn",
    }  # fmt: skip
    fixes = [one.fix for one in findings]
    assert "openclaw config set channels.telegram.dmPolicy pairing" in fixes
    assert "openclaw config set channels.telegram.accounts.work.groupPolicy allowlist" in fixes
    closed = load(tmp_path / "none.json", {"HOME": str(tmp_path)})
    assert not is_open(closed.config)


def test_agents_each_have_their_own_word(tmp_path: Path) -> None:
    config = {
        "agents": {
            "list": [
                {"id": "main"}, {"id": "boxed", "sandbox": {"mode": "all"}},
                {"id": "quiet", "tools": {"deny": ["exec"]}}, {"id": "part", "sandbox": {"mode": "non-main"}},
            ]
        },
        "tools": {"agentToAgent": {"enabled": True}},
    }  # fmt: skip
    findings = audit(config, tmp_path)
    told = [one.detail for one in findings if one.check == "tools.exec"]
    assert [text.split()[1] for text in told] == ["main", "part"]
    assert 'sandbox.mode is "non-main"' in told[1]
    assert checks(findings)["tools.agentToAgent"] == "info"
    config["tools"] = {"agentToAgent": {"enabled": True, "allow": ["main", "boxed"]}}
    assert "tools.agentToAgent" not in checks(audit(config, tmp_path))


@pytest.mark.spec("TRX-11")
def test_secrets_in_the_file_are_named_and_not_shown(tmp_path: Path) -> None:
    secret = "sk-live-0123456789abcdef"
    config = {
        "gateway": {"auth": {"token": GOOD}},
        "models": {"providers": {
            "p": {"baseUrl": "https://user:pass@x.org/v1", "apiKey": secret, "models": [{"id": "m"}]},
            "q": {"baseUrl": "https://y.org", "apiKey": "${KEY_OF_Q}", "models": [{"id": "m"}]},
        }},
        "channels": {"telegram": {"accounts": {"a": {"botToken": secret}}}},
        "tools": {"deny": ["exec"]},
    }  # fmt: skip
    (finding,) = audit(config, tmp_path, KEY_OF_Q="sk-other-0123456789abcdef")
    assert (finding.check, finding.severity) == ("config.secrets", "info")
    for name in (
        "models.providers.p.baseUrl",
        "models.providers.p.apiKey",
        "channels.telegram.accounts.a.botToken",
    ):
        assert name in finding.detail
    assert "providers.q" not in finding.detail and "gateway.auth" not in finding.detail
    assert secret not in finding.detail + finding.fix
    many = {"channels": {f"c{at}": {"botToken": secret} for at in range(7)}, "tools": {"deny": ["exec"]}}
    (finding,) = audit(many, tmp_path)
    assert "and 2 more" in finding.detail


def test_a_broken_text_is_no_reason_to_stop(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    path.write_text("{ broken")
    assert checks(audit_config(load(path, {"HOME": str(tmp_path)}))) == {"tools.exec": "info"}
