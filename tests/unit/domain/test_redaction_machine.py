"""Masking at rest (TRX-11): only what is surely a secret, never by a field's name, and said in the text."""

from __future__ import annotations

import pytest

from openclaw.domain.redaction import Redacted, mask, mask_machine_text, redact

NOTE = "\n[1 secret masked before this text was stored]"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSM"


@pytest.mark.spec("TRX-11")
@pytest.mark.parametrize(
    "token",
    [
        "sk-abcdefghijklmno1",
        "sk-ant-api03-Abcdef0123456789-_x",
        "ghp_" + "a1B2" * 9,
        "github_pat_11ABCDEFG0123456789_abcdef",
        "xoxb-1234567890-abcdefghijklmnop",
        "xapp-1-A0123-0123456789abcdef",
        "gsk_abcdefghijklmnop",
        "AIzaSyA0123456789012345678901234",
        "ya29.a0AfB_abcdefghijklmnop",
        "npm_abcdefghijklmnop",
        "hf_abcdefghijklmnop",
        "r8_abcdefghijklmnop",
        "pplx-abcdefghijklmnop",
        "AKIDabcdefghijkl",
        "LTAIabcdefghijkl",
        "AKIAABCDEFGHIJKLMNOP",
        "12345678:AAabcdefghijklmnopqrstuvwxyz-_01234",
        "1234567890:AAabcdefghijklmnopqrstuvwxyz-_01234",
        JWT,
    ],
)
def test_sure_credential_formats_are_masked_and_the_text_says_so(token: str) -> None:
    assert mask_machine_text(f"out: {token}!") == Redacted(f"out: {mask(token)}!{NOTE}", 1)


@pytest.mark.spec("TRX-11")
@pytest.mark.parametrize(
    "text",
    [
        "PASSWORD=hunter2 and token: abcdef0123456789abcdef, api_key = 'xyz'",
        '{"password":"correct horse battery staple","accessToken":"abcdefghijklmnopqrstuvwx"}',
        "Authorization: Bearer abcdefghijklmnopqrstuvwxyz",
        "Cookie: sid=abcdefghijklmnopqrstuvwxyz",
        "https://x.y/?token=abcdefghijklmnopqrstuvwxyz --secret abcdefghijklmnop",
        "card number: 4111 1111 1111 1111, cvv: 123",
        "sk-learn-notes-from-2026 and sk-abcdefghijklmnop and sk-ab12cd34",
        "ghp_abcdefghijklmnopq"[:19] + " gsk_abcdef-ghijkl-mnopqr npm_abcdefghij",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0",
        "1234567:AAabcdefghijklmnopqrstuvwxyz-_01234",
        "12345678901:AAabcdefghijklmnopqrstuvwxyz-_01234",
        "12345678:ABabcdefghijklmnopqrstuvwxyz-_01234",
        "12345678:AAabcdefghijklmnopqrstuvwxyz-_0123",
        "12345678:AAabcdefghijklmnopqrstuvwxyz-_012345",
    ],
)
def test_field_names_and_look_alikes_never_mask_at_rest(text: str) -> None:
    assert mask_machine_text(text) == Redacted(text, 0)
    assert mask_machine_text(text).text is text


@pytest.mark.spec("TRX-11")
def test_known_values_and_private_keys_are_masked_and_counted() -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----"
    masked = mask_machine_text(
        f"gateway says my-known-secret-value\n{pem}", frozenset({"my-known-secret-value"})
    )

    assert masked.count == 2
    assert masked.text == (
        "gateway says my-kno…alue\n-----BEGIN PRIVATE KEY-----\n***\n-----END PRIVATE KEY-----"
        "\n[2 secrets masked before this text was stored]"
    )


@pytest.mark.spec("TRX-11")
def test_masking_twice_adds_nothing_and_a_view_finds_nothing_more() -> None:
    known = frozenset({"my-known-secret-value"})
    once = mask_machine_text(f"my-known-secret-value {JWT} ghp_{'a1B2' * 9}", known)

    assert once.count == 3
    assert mask_machine_text(once.text, known) == Redacted(once.text, 0)
    assert redact(once.text, known) == Redacted(once.text, 0)
