"""Which values are secret, and a config shown without them."""

from __future__ import annotations

import pytest

from openclaw.config.credentials import REDACTED, redacted_text
from openclaw.config.json5 import Json5Error, parse
from openclaw.config.nodes import plain
from openclaw.config.views import secrets
from tests.unit.config.reading import check, config_of, problems_of

LONG = "abcdefghijklmnop"  # exactly as long as a secret must be


@pytest.mark.spec("TRX-11")
def test_secrets_are_collected_from_typed_and_foreign_places() -> None:
    text = f"""{{
      gateway: {{auth: {{token: "1{LONG}", password: "2{LONG}"}},
        remote: {{token: "3{LONG}", password: "4{LONG}"}}}},
      models: {{providers: {{p: {{apiKey: "5{LONG}", baseUrl: "https://not-a-secret.example"}}}}}},
      hooks: {{token: "6{LONG}", defaultSessionKey: "hook:not-a-secret-at-all"}},
      cron: {{webhookToken: "7{LONG}"}},
      channels: {{slack: {{botToken: "8{LONG}", name: "no {LONG}",
        accounts: {{a: {{signingSecret: "9{LONG}"}}}},
        nested: {{list: [{{password: "a{LONG}"}}], tokens: ["no {LONG}"]}}}}}},
      agents: {{defaults: {{models: {{"openai/x": {{params: {{apiKey: "b{LONG}"}}}}}}}}}},
      store: {{url: "postgresql://user:c{LONG}@host/db"}},
      session: {{identityLinks: {{token: ["telegram:1234567890123"]}}}},
    }}"""
    found = secrets(config_of(text))
    url = f"postgresql://user:c{LONG}@host/db"
    assert found == {f"{mark}{LONG}" for mark in "123456789abc"} | {url}


@pytest.mark.spec("TRX-11")
def test_short_values_are_never_secrets_to_mask() -> None:
    assert secrets(config_of(f"{{gateway: {{auth: {{token: '{LONG[:-1]}'}}}}}}")) == frozenset()
    assert secrets(config_of(f"{{gateway: {{auth: {{token: '{LONG}'}}}}}}")) == {LONG}
    assert secrets(config_of("{store: {url: 'sqlite:///x'}}")) == frozenset()


@pytest.mark.spec("TRX-11")
def test_values_behind_references_count() -> None:
    checked = check("{session: {store: '${WHERE}'}}", {"WHERE": f"/x/{LONG}"})
    assert secrets(checked.config) == frozenset()
    assert secrets(checked.config, checked.referenced_secrets) == {f"/x/{LONG}"}


@pytest.mark.spec("TRX-11")
def test_a_config_is_shown_without_secrets_and_with_everything_else() -> None:
    text = """{
  // about the door
  gateway: { auth: { token: 'hunter2', mode: "token" } },
  models: { providers: { p: { apiKey: "${KEY}", baseUrl: "https://u:p@h/v1" } } },
  channels: { x: { "botToken": "b", tokenFile: "/f", list: [{ secret: "s" }], password: "" } },
  skills: { entries: { y: { apiKey: "k" } } },
}"""
    shown = redacted_text(text)
    for secret in ("hunter2", "u:p@", '"b"', '"s"', '"k"'):
        assert secret not in shown
    assert shown.count(REDACTED) == 5
    assert "// about the door" in shown
    assert '"${KEY}"' in shown
    tree = plain(parse(shown).root)
    assert tree["channels"]["x"]["tokenFile"] == "/f"
    assert tree["channels"]["x"]["password"] == ""
    assert tree["gateway"]["auth"] == {"token": REDACTED, "mode": "token"}


@pytest.mark.spec("CFG-3", "TRX-11")
@pytest.mark.parametrize("place", ["gateway: {auth: {token: '%s'}}", "channels: {x: {botToken: '%s'}}"])
def test_the_placeholder_is_never_a_value(place: str) -> None:
    [problem] = problems_of("{" + place % REDACTED + "}")
    assert problem.endswith("this placeholder only hides a value when it is shown; write the value itself")


@pytest.mark.spec("TRX-11")
def test_what_cannot_be_read_is_not_shown() -> None:
    with pytest.raises(Json5Error):
        redacted_text("{gateway: {auth: {token: 'hunter2'}")
