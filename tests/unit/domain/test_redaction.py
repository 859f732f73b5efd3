"""Masking in views: every pattern of HIST-7, what each leaves alone, and the masks themselves."""

from __future__ import annotations

import pytest

from openclaw.domain.redaction import Redacted, is_secret_name, mask, redact

PEM = "-----BEGIN {kind}PRIVATE KEY{block}-----{body}-----END {kind}PRIVATE KEY{block}-----"


@pytest.mark.spec("HIST-7")
@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ("x", "***"),
        ("a" * 17, "***"),
        ("abcdef" + "-" * 8 + "wxyz", "abcdef…wxyz"),
        ("abcdef" + "-" * 90 + "wxyz", "abcdef…wxyz"),
        ("***", "***"),
        ("abcdef…wxyz", "abcdef…wxyz"),
        ("abcdef…wxy", "***"),
        ("abcdef…wxyzz", "***"),
        ("abcde…fwxyz", "***"),
    ],
)
def test_the_mask_shows_six_and_four_of_eighteen_or_more(value: str, masked: str) -> None:
    assert mask(value) == masked


@pytest.mark.spec("HIST-6", "HIST-7")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PASSWORD = hunter2", "PASSWORD = ***"),
        ("DB_PASSWORD=hunter2 next", "DB_PASSWORD=*** next"),
        ("export GH_TOKEN=abcdef", "export GH_TOKEN=***"),
        ("CLIENT_SECRET: abcdef", "CLIENT_SECRET: ***"),
        ("STRIPE_KEY=abcdef", "STRIPE_KEY=***"),
        ("OPENAI_API_KEY='abc def'", "OPENAI_API_KEY='***'"),
        ("my password: hunter2.", "my password: ***."),
        ("passwd := abc, passphrase => def;", "passwd := ***, passphrase => ***;"),
        ("API key: abcdef12 and api-key=zzz", "API key: *** and api-key=***"),
        ("private_key = abc", "private_key = ***"),
        ("**Password:** `hunter2 x` (keep it)", "**Password:** `***` (keep it)"),
        ("**Token**: abc", "**Token**: ***"),
        ("token: Bearer abcdefg", "token: Bearer ***"),
        ('password="correct horse" ok', 'password="***" ok'),
        ('password="unclosed horse\nnext', 'password="***\nnext'),
        ("secret=abc\\ndef", "secret=***\\ndef"),
        ("secret=ab\\cd", "secret=***"),
        ("PaSsWoRd=İstanbul İsecret=x", "PaSsWoRd=*** İsecret=***"),
        ("token=0123456789abcdefgh", "token=012345…efgh"),
        ("Client(token=a,password='b')", "Client(token=***'***')"),
        ("password: ** hunter2 **", "password: ** *** **"),
        ("password: token=…wxyz", "password: token=…wxyz"),
        ("token: …wxyz secret: …wxyzz", "token: …wxyz secret: ***"),
    ],
)
def test_assignments_are_masked(text: str, expected: str) -> None:
    assert redact(text).text == expected


@pytest.mark.spec("HIST-7")
@pytest.mark.parametrize(
    ("text", "expected", "count"),
    [
        ('{"apiKey":"a1","token":"b2","secret":"c3"}', '{"apiKey":"***","token":"***","secret":"***"}', 3),
        (
            '{"password": "d4", "accessToken" : "e5", "refreshToken":"f6"}',
            '{"password": "***", "accessToken" : "***", "refreshToken":"***"}',
            3,
        ),
        (r'{"token":"quo\"ted end"}', '{"token":"***"}', 1),
        (r'"{\"token\":\"abc\",\"user\":\"bob\"}"', r'"{\"token\":\"***\",\"user\":\"bob\"}"', 1),
        (r'"{\\\"token\\\":\\\"abc\\\"}"', r'"{\\\"token\\\":\\\"***\\\"}"', 1),
        ("{'secret': 'abc'}", "{'secret': '***'}", 1),
        ('{"token":""}', '{"token":""}', 0),
        ('{"token":null,"secret":true}', '{"token":null,"secret":true}', 0),
    ],
)
def test_json_fields_are_masked(text: str, expected: str, count: int) -> None:
    assert redact(text) == Redacted(expected, count)


@pytest.mark.spec("HIST-7")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://x.y/?token=abc&user=bob#top", "https://x.y/?token=***&user=bob#top"),
        ("https://x.y/?a=1&key=abc&api_key=def", "https://x.y/?a=1&key=***&api_key=***"),
        ("?access_token=abc&hook-token=x&id_token=y", "?access_token=***&hook-token=***&id_token=***"),
        ("?client_secret=abc&sig=d&signature=e&auth=f", "?client_secret=***&sig=***&signature=***&auth=***"),
        ("?password=a&passwd=b&pass=c&pwd=d", "?password=***&passwd=***&pass=***&pwd=***"),
        ("?X-Amz-Signature=abc&X-Amz-Date=1", "?X-Amz-Signature=***&X-Amz-Date=1"),
        ('href="?token=abc">x', 'href="?token=***">x'),
        ("?sessionKey=agent:main:main&page=2", "?sessionKey=agent:main:main&page=2"),
    ],
)
def test_query_secrets_are_masked_one_by_one(text: str, expected: str) -> None:
    assert redact(text).text == expected


@pytest.mark.spec("HIST-7")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("curl -H 'Authorization: Basic dXNlcjpw' x", "curl -H 'Authorization: Basic ***' x"),
        ('{"authorization":"Bearer abc"}', '{"authorization":"Bearer ***"}'),
        ("Proxy-Authorization: abc", "Proxy-Authorization: ***"),
        ("sent bearer abcdefghijklmnopqr, ok", "sent bearer abcdef…opqr, ok"),
        ("Cookie: a=b\nHost: x", "Cookie: ***\nHost: x"),
        ("Set-Cookie: sid=abcdefghijklmno; Path=/\r\nX: y", "Set-Cookie: sid=ab…th=/\r\nX: y"),
        ("-H 'Cookie: a=b' x", "-H 'Cookie: ***' x"),
        ('{"cookie":"a=b; c=d","x":1}', '{"cookie":"***","x":1}'),
        ("run --token abc --verbose", "run --token *** --verbose"),
        ("run --hook-token=abc --api-key 'd e' x", "run --hook-token=*** --api-key '***' x"),
        ("run --PASSWORD abc", "run --PASSWORD ***"),
        ("cvv: 123, CVC=4567", "cvv: ***, CVC=***"),
        ('{"cardNumber":"4111111111111111","cardExpiry":"12/29"}', '{"cardNumber":"***","cardExpiry":"***"}'),
        ("card number: 4111 1111 1111 1111", "card number: 4111 1…1111"),
        ("PAN=4111111111111111 security code: 999", "PAN=*** security code: ***"),
    ],
)
def test_headers_flags_and_card_fields_are_masked(text: str, expected: str) -> None:
    assert redact(text).text == expected


@pytest.mark.spec("HIST-7")
@pytest.mark.parametrize(
    "token",
    [
        "sk-ab12cd34",
        "sk-proj-Abc_123-" + "x" * 30,
        *(f"gh{letter}_{'a1B2' * 9}" for letter in "pousr"),
        "github_pat_" + "a1_B2" * 10,
        *(f"xox{letter}-1234567890-abc" for letter in "abprs"),
        "xapp-1-A012345-6789",
        "gsk_abcdefghij",
        "AIzaSyA-0123456789_0123456789",
        "ya29.a0Af_B-c/d.ef",
        "eyJhbGciOiJI.eyJzdWIiOiI",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_DEF",
        "npm_abcdefghij",
        "hf_abcdefghij",
        "r8_abcdefghij",
        "pplx-abcdefghij",
        "AKIDabcdefghij",
        "LTAIabcdefghij",
        "AKIAABCDEFGHIJKLMNOP",
        "ASIAABCDEFGHIJKLMNOP",
        "123456:abcdefghijklmnopqrst",
        "1234567890:AAabcdefghijklmnopqrstuvwxyz-_01234",
    ],
)
def test_known_token_formats_are_masked_wherever_they_stand(token: str) -> None:
    masked = mask(token)

    assert redact(token) == Redacted(masked, 1)
    assert redact(f"see {token}, or '{token}'") == Redacted(f"see {masked}, or '{masked}'", 2)
    assert redact(rf'{{"out":"line\n{token}"}}') == Redacted(rf'{{"out":"line\n{masked}"}}', 1)


@pytest.mark.spec("HIST-7")
@pytest.mark.parametrize(
    "text",
    [
        "sk-short77",
        "task-abcdefghijkl, desk-abcdefghijkl, xsk-abcdefgh",
        "ghp_abcdefghijklmno ghx_" + "a" * 20,
        "github_pat_abcdefghijklmno",
        "xoxb-123456789 xox1-1234567890ab xapp-123456789",
        "gsk_abcdefghi AIzaSyA012345678901234 ya29.abcdefghi",
        "eyJabcdefg.abcdefgh eyJabcdefgh.abcdefg eyJabcdefgh",
        "npm_config_registry hf_hub_download r8_abcdefghi pplx-abcdefghi",
        "AKIDabcdefghi LTAIabcdefghi AKIAABCDEFGHIJKLMNOPQ AKIAABCDEFGHIJKLMNO",
        "12345:abcdefghijklmnopqrst 1234567890123:abcdefghijklmnopqrst 123456:abcdefghijklmnopqrs",
        "1234567890:0f6958c4-a29a-4c07-b389-3c7900f498f5",
        "sessionKey: agent:main:main, session_key=agent:main:x, idempotencyKey: abc, primary key = id",
        "keyboard: qwerty, monkey=george, KEY: enter, key = value",
        "totalTokens: 7113, max_tokens=4096, secrets: many, passwords: few, tokens = 5",
        "token: , secret=; password:",
        "token=${GITHUB_TOKEN} secret=$MY_SECRET password: null api_key=undefined",
        "cookie: recipe follows, bearer of news, bearer abcdefghijklmnopq",
        "run --tokens abc --token --verbose; x--token abc",
        "cvv: 12, pan: 200 g, japan: 4111111111111111, card no: 3",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "a line of -----BEGIN PRIVATE KEY----- with prose after it",
        "the 日本語 text, ¿sin secretos? Nothing here.",
        "",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == Redacted(text, 0)
    assert redact(text).text is text


@pytest.mark.spec("HIST-7")
@pytest.mark.parametrize(
    ("body", "masked_body"),
    [
        ("\nMIIEabc\nxyz\n", "\n***\n"),
        ("\r\nMIIE\r\n", "\n***\n"),
        ("\\nMIIE\\nabc\\n", "\\n***\\n"),
        ("MIIEabcdef", "***"),
        ("\nProc-Type: 4,ENCRYPTED\n\nsk-abcdefghijklmnop\n", "\n***\n"),
    ],
)
@pytest.mark.parametrize(("kind", "block"), [("", ""), ("RSA ", ""), ("EC ", ""), ("PGP ", " BLOCK")])
def test_a_private_key_keeps_its_first_and_last_line(
    kind: str, block: str, body: str, masked_body: str
) -> None:
    text = f'KEY="{PEM.format(kind=kind, block=block, body=body)}"'
    expected = f'KEY="{PEM.format(kind=kind, block=block, body=masked_body)}"'

    assert redact(text) == Redacted(expected, 1)
    assert redact(f"PRIVATE_{text}") == Redacted(f"PRIVATE_{expected}", 1)
    assert redact(expected) == Redacted(expected, 0)


@pytest.mark.spec("HIST-7")
def test_a_private_key_that_was_cut_off_is_masked_to_its_last_whole_line() -> None:
    head = "-----BEGIN PRIVATE KEY-----"
    line = "\n" + "M" * 64
    escaped = "\\n" + "M" * 64

    assert redact(head + line + line).text == f"{head}\n***\n"
    assert redact(head + line + line + "\nthe rest, unharmed").text == f"{head}\n***\n\nthe rest, unharmed"
    assert redact(head + escaped + escaped).text == f"{head}\\n***\\n"
    assert redact(head + line + "\n" + head + line).text == f"{head}\n***\n\n{head}\n***\n"
    assert redact(head + "\n-----END PRIVATE KEY-----").count == 0


@pytest.mark.spec("TRX-11")
def test_known_secrets_of_sixteen_characters_are_masked_wherever_they_stand() -> None:
    short, exact, long = "a-b-c-d-e-f-g-h", "a-b-c-d-e-f-g-hi", "1-2-3-4-5-6-7-8-90"
    text = f"{short} {exact}|{exact}{long} {long[:-1]}"

    redacted = redact(text, frozenset({short, exact, long}))

    assert redacted == Redacted(f"{short} ***|***1-2-3-…8-90 {long[:-1]}", 3)
    assert redact(text).count == 0


@pytest.mark.spec("HIST-7")
def test_overlapping_finds_are_one_mask() -> None:
    secret = "prefix-0123456789-suffix"

    assert redact(f"token=x{secret}y", frozenset({secret, secret[:20]})) == Redacted("token=xprefi…fixy", 1)
    assert redact(f"{secret}{secret}", frozenset({secret})).count == 2
    assert redact("?token=sk-abcdefghijklmnopq&b=c") == Redacted("?token=sk-abc…nopq&b=c", 1)
    assert redact("token=password=abc secret=d").text == "token=*** secret=***"
    # Two values that overlap without one holding the other are masked from the first to the last.
    assert redact("<abcdefghijklmnopqrstuvwxyz>", frozenset({"abcdefghijklmnopqr", "klmnopqrstuvwxyz"})) == (
        Redacted("<abcdef…wxyz>", 1)
    )


@pytest.mark.spec("HIST-7")
@pytest.mark.parametrize(
    "name",
    [
        *(
            "token",
            "secret",
            "password",
            "passwd",
            "passphrase",
            "accessToken",
            "refresh_token",
            "clientSecret",
        ),
        *(
            "apiKey",
            "api_key",
            "API-KEY",
            "STRIPE_KEY",
            "privateKey",
            "secretKey",
            "Authorization",
            "Set-Cookie",
        ),
        *("cvv", "cvv2", "CVC", "pan", "cardNumber", "card_number", "card-no", "cardExpiry", "securityCode"),
    ],
)
def test_field_names_that_hold_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.spec("HIST-7")
@pytest.mark.parametrize(
    "name",
    [
        *(
            "sessionKey",
            "idempotencyKey",
            "key",
            "KEY",
            "totalTokens",
            "tokenCount",
            "text",
            "",
            "japan",
            "monkey",
        ),
        *("secretary", "discard", "cookies", "publicKey", "PUBLICKEY", "_key"),
    ],
)
def test_field_names_that_do_not(name: str) -> None:
    assert not is_secret_name(name)
