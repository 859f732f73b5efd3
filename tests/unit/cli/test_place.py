"""Which gateway a command talks to, and that a credential only goes where it belongs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from openclaw.cli.place import Flags, Place, find_place
from openclaw.errors import ConfigInvalid, InvalidRequest

LOCAL = '{ gateway: { port: 20001, auth: { token: "local-token-0123456789" } } }'
REMOTE = """{ gateway: {
  mode: "remote", port: 20001, auth: { token: "local-token-0123456789" },
  remote: { url: "wss://far.example/gw", token: "remote-token-0123456789" },
} }"""

WriteConfig = Callable[[str], Path]


def find(home: Path, flags: Flags | None = None, **env: str) -> Place:
    return find_place(flags or Flags(), {"HOME": str(home), **env})


@pytest.mark.spec("CLI-4")
def test_without_any_configuration_it_is_the_default_port_of_this_machine(home: Path) -> None:
    place = find(home)
    assert (place.url, place.token, place.password) == ("ws://127.0.0.1:18789", None, None)
    assert (place.source, place.on_this_machine, place.remote) == ("none", True, False)


@pytest.mark.spec("CLI-4")
def test_the_local_config_gives_port_and_token(home: Path, write_config: WriteConfig) -> None:
    path = write_config(LOCAL)
    place = find(home)
    assert (place.url, place.token, place.source) == (
        "ws://127.0.0.1:20001",
        "local-token-0123456789",
        "config",
    )
    assert place.config_path == str(path)


@pytest.mark.spec("CLI-4")
@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        ('token: "t-0123456789abcdef", password: "p-0123456789abcdef"', ("t-0123456789abcdef", None)),
        ('password: "p-0123456789abcdef"', (None, "p-0123456789abcdef")),
        (
            'mode: "password", token: "t-0123456789abcdef", password: "p-0123456789abcdef"',
            (None, "p-0123456789abcdef"),
        ),
        ('mode: "none", token: "t-0123456789abcdef"', (None, None)),
    ],
)
def test_only_the_credential_that_the_gateway_checks_is_offered(
    home: Path, write_config: WriteConfig, auth: str, expected: tuple[str | None, str | None]
) -> None:
    write_config(f"{{ gateway: {{ auth: {{ {auth} }} }} }}")
    place = find(home)
    assert (place.token, place.password) == expected
    assert place.source == ("none" if expected == (None, None) else "config")


@pytest.mark.spec("OWN-2")
def test_in_remote_mode_the_local_gateway_and_its_token_do_not_matter(
    home: Path, write_config: WriteConfig
) -> None:
    write_config(REMOTE)
    place = find(home)
    assert (place.url, place.token, place.source) == (
        "wss://far.example/gw",
        "remote-token-0123456789",
        "remote",
    )
    assert (place.remote, place.on_this_machine, place.port) == (True, False, 443)
    assert find(home, OPENCLAW_GATEWAY_PORT="20005").url == "wss://far.example/gw"


@pytest.mark.spec("OWN-2")
def test_remote_mode_without_a_url_is_refused_by_a_message_that_names_the_setting(
    home: Path, write_config: WriteConfig
) -> None:
    write_config('{ gateway: { mode: "remote" } }')
    with pytest.raises((InvalidRequest, ConfigInvalid), match=r"gateway\.remote\.url"):
        find(home)
    with pytest.raises(InvalidRequest, match=r"gateway\.remote\.url is not set"):
        find_place(Flags(), {"HOME": str(home)}, tolerate_invalid=True)


@pytest.mark.spec("CLI-5")
@pytest.mark.parametrize("config", [LOCAL, REMOTE, "{ not json5"])
def test_with_a_url_nothing_comes_from_config_or_environment(
    home: Path, write_config: WriteConfig, config: str
) -> None:
    write_config(config)
    env = {"OPENCLAW_GATEWAY_TOKEN": "env-token", "OPENCLAW_GATEWAY_URL": "ws://127.0.0.1:1"}
    place = find(home, Flags(url="ws://127.0.0.1:20002"), **env)
    assert (place.url, place.token, place.password, place.source) == (
        "ws://127.0.0.1:20002",
        None,
        None,
        "none",
    )
    given = find(home, Flags("ws://127.0.0.1:20002", "t", "p"), **env)
    assert (given.token, given.password, given.source) == ("t", "p", "flag")


@pytest.mark.spec("CLI-5")
def test_a_url_from_the_environment_gets_no_credential_from_the_config(
    home: Path, write_config: WriteConfig
) -> None:
    write_config(LOCAL)
    place = find(home, OPENCLAW_GATEWAY_URL=" ws://other.example:99 ")
    assert (place.host, place.port, place.token) == ("other.example", 99, None)
    with_token = find(home, OPENCLAW_GATEWAY_URL="ws://other.example", OPENCLAW_GATEWAY_TOKEN="env-token")
    assert (with_token.port, with_token.token, with_token.source) == (80, "env-token", "env")
    with_password = find(home, OPENCLAW_GATEWAY_URL="ws://other.example", OPENCLAW_GATEWAY_PASSWORD="pw")
    assert (with_password.token, with_password.password, with_password.source) == (None, "pw", "env")


@pytest.mark.spec("CLI-4")
def test_flags_win_over_the_environment_and_that_over_the_config(
    home: Path, write_config: WriteConfig
) -> None:
    write_config(LOCAL)
    from_env = find(home, OPENCLAW_GATEWAY_TOKEN="env-token", OPENCLAW_GATEWAY_PORT="20003")
    assert (from_env.port, from_env.token, from_env.source) == (20003, "env-token", "env")
    flagged = find(home, Flags(token="flag-token"), OPENCLAW_GATEWAY_TOKEN="env-token")
    assert (flagged.port, flagged.token, flagged.source) == (20001, "flag-token", "flag")


@pytest.mark.spec("CFG-3")
def test_an_invalid_config_is_refused_unless_the_command_diagnoses(
    home: Path, write_config: WriteConfig
) -> None:
    path = write_config('{ gateway: { port: 20004, auth: { token: "t-0123456789abcdef" }, nonsense: 1 } }')
    with pytest.raises(ConfigInvalid, match="nonsense"):
        find(home)
    place = find_place(Flags(), {"HOME": str(home)}, tolerate_invalid=True)
    assert (place.port, place.token, place.config_path) == (20004, "t-0123456789abcdef", str(path))


@pytest.mark.spec("CLI-4")
@pytest.mark.parametrize("url", ["", "127.0.0.1:18789", "ftp://x", "ws://", "ws://h:99999", "ws://[::1"])
def test_a_bad_url_is_refused_and_says_how_to_write_it(home: Path, url: str) -> None:
    with pytest.raises(InvalidRequest, match="ws://") as refused:
        find(home, Flags(url=url))
    assert "--url" in refused.value.message


@pytest.mark.spec("CLI-4")
@pytest.mark.parametrize("port", ["0", "65536", "x", "-1", "9" * 5000, "١٢"])
def test_a_bad_port_in_the_environment_is_refused(home: Path, port: str) -> None:
    with pytest.raises(InvalidRequest, match="OPENCLAW_GATEWAY_PORT"):
        find(home, OPENCLAW_GATEWAY_PORT=port)


@pytest.mark.spec("CLI-4")
def test_a_web_address_is_understood_and_secrets_in_it_are_not_shown(home: Path) -> None:
    place = find(home, Flags(url="https://user:hunter2@far.example/gw/?token=abc#frag"))
    assert place.url == "wss://user:hunter2@far.example/gw/?token=abc"
    assert place.shown_url == "wss://far.example:443/gw"
    assert find(home, Flags(url="http://[::1]:5/")).shown_url == "ws://[::1]:5"
    assert find(home, Flags(url="ws://localhost:5")).on_this_machine
