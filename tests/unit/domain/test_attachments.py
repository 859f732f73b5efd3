"""Attachments: what is taken, what it becomes, and what is refused with which words."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.attachments import (
    CHAT_LIMITS,
    IMAGE_TYPES,
    SPAWN_LIMITS,
    AttachmentLimits,
    accept_attachments,
    image_block,
    sniff,
)
from openclaw.domain.transcript import ImageBlock, TextBlock
from openclaw.errors import InvalidRequest

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
JPEG = b"\xff\xd8\xff\xe0" + bytes(60)
GIF = b"GIF89a" + bytes(20)
WEBP = b"RIFF\x10\x00\x00\x00WEBPVP8 " + bytes(20)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def attached(data: bytes, mime: str = "", name: str = "", **more: Any) -> dict[str, Any]:
    return {"content": b64(data), "mimeType": mime, "fileName": name, **more}


def refusal(*raw: dict[str, Any], limits: AttachmentLimits = CHAT_LIMITS) -> str:
    with pytest.raises(InvalidRequest) as caught:
        accept_attachments(raw, limits)
    return caught.value.message


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (PNG, "image/png"),
        (JPEG, "image/jpeg"),
        (GIF, "image/gif"),
        (b"GIF87a..", "image/gif"),
        (WEBP, "image/webp"),
    ],
)
def test_an_image_stays_an_image_with_the_type_of_its_bytes(data: bytes, mime: str) -> None:
    for claim in (mime, "", "application/octet-stream", mime.upper(), f"{mime}; q=1"):
        (block,) = accept_attachments([attached(data, claim)])
        assert block == ImageBlock(b64(data), mime)
    assert mime in IMAGE_TYPES


def test_other_names_of_a_type_count_as_the_type() -> None:
    assert accept_attachments([attached(JPEG, "image/jpg")]) == (ImageBlock(b64(JPEG), "image/jpeg"),)
    assert accept_attachments([attached(JPEG, "image/pjpeg")]) == (ImageBlock(b64(JPEG), "image/jpeg"),)
    assert accept_attachments([attached(PNG, "image/x-png")]) == (ImageBlock(b64(PNG), "image/png"),)


def test_text_becomes_a_text_block_under_a_header() -> None:
    (block,) = accept_attachments([attached(b"a,b\n1,2\n", "text/csv", "table.csv")])
    assert block == TextBlock(
        "[Attached file: table.csv (text/csv, 8 bytes)]\na,b\n1,2\n\n[End of file: table.csv]"
    )
    (plain,) = accept_attachments([attached("né".encode())])
    assert plain == TextBlock("[Attached file: unnamed (text/plain, 3 bytes)]\nné\n[End of file: unnamed]")


@pytest.mark.parametrize(
    "mime",
    ["application/json", "application/ld+json", "image/svg+xml", "application/x+xml", "application/x-yaml"],
)
def test_types_that_are_written_as_text_are_text(mime: str) -> None:
    (block,) = accept_attachments([attached(b"{}", mime, "a")])
    assert isinstance(block, TextBlock)
    assert f"({mime}, 2 bytes)" in block.text


def test_a_byte_order_mark_and_control_characters_do_not_reach_the_text() -> None:
    (block,) = accept_attachments([attached(b"\xef\xbb\xbfone\x1b[31m\ttwo", "text/plain", "a.txt")])
    assert isinstance(block, TextBlock)
    assert block.text.splitlines()[1] == "one[31m\ttwo"


def test_blocks_keep_the_order_of_the_attachments() -> None:
    blocks = accept_attachments([attached(PNG), attached(b"text"), attached(GIF)])
    assert [type(block) for block in blocks] == [ImageBlock, TextBlock, ImageBlock]
    assert accept_attachments([]) == ()


def test_the_shapes_that_clients_send_are_all_read() -> None:
    expected = (ImageBlock(b64(PNG), "image/png"),)
    assert accept_attachments([{"type": "image", "content": f"data:image/png;base64,{b64(PNG)}"}]) == expected
    assert (
        accept_attachments([{"source": {"type": "base64", "media_type": "image/png", "data": b64(PNG)}}])
        == expected
    )
    assert accept_attachments([{"data": b64(PNG), "name": "x.png"}]) == expected
    broken = "\r\n".join(b64(PNG)[at : at + 10] for at in range(0, len(b64(PNG)), 10))
    assert accept_attachments([{"content": broken}]) == expected


def test_names_are_cut_to_a_last_part_on_one_line() -> None:
    def header(name: Any) -> str:
        (block,) = accept_attachments([{"content": b64(b"x"), "fileName": name}])
        assert isinstance(block, TextBlock)
        return block.text.splitlines()[0]

    assert header("../../etc/pass\nwd]").startswith("[Attached file: pass wd) (")
    assert header("C:\\files\\a.txt").startswith("[Attached file: a.txt (")
    assert header("[x]").startswith("[Attached file: (x) (")
    assert header(7).startswith("[Attached file: unnamed (")
    assert header("a" * 500) == f"[Attached file: {'a' * 120} (text/plain, 1 bytes)]"
    assert header("bad\ud800\x00name").startswith("[Attached file: bad\ufffdname (")


def test_a_claim_against_the_bytes_is_an_error_that_names_both() -> None:
    assert refusal(attached(PNG, "image/jpeg", "a.jpg")) == (
        "attachment 1 (a.jpg) says it is image/jpeg, but its bytes are image/png"
    )
    assert (
        refusal(attached(PNG, "text/plain"))
        == "attachment 1 says it is text/plain, but its bytes are image/png"
    )
    assert (
        refusal(attached(b"hello", "image/png"))
        == "attachment 1 says it is image/png, but its bytes are text"
    )
    assert refusal(attached(PNG), attached(b"x", "application/pdf")).startswith("attachment 2 says")


def test_what_no_model_reads_is_refused_with_what_can_be_sent() -> None:
    way_out = "send UTF-8 text or a PNG, JPEG, GIF or WebP image"
    assert refusal(attached(b"%PDF-1.7", "application/pdf")) == f"attachment 1 is application/pdf; {way_out}"
    assert refusal(attached(b"PK\x03\x04zip")) == f"attachment 1 is application/zip; {way_out}"
    assert refusal(attached(b"BM" + bytes(9))) == f"attachment 1 is image/bmp; {way_out}"
    assert refusal(attached(b"\x00\x01\x02")) == f"attachment 1 is of an unknown kind; {way_out}"
    assert refusal(attached(b"\x00\x01", "image/heic")) == f"attachment 1 is image/heic; {way_out}"


@pytest.mark.parametrize("content", ["@@@@", "abc", "YWJj=", "YW Jj!", "YWJ\u00e9", "YQ==YQ=="])
def test_content_that_is_not_base64_is_refused(content: str) -> None:
    assert refusal({"content": content}) == "attachment 1: the content is not valid base64"


def test_missing_and_odd_content_is_refused() -> None:
    assert "has no content" in refusal({})
    assert "has no content" in refusal({"content": 5})
    assert "has no content" in refusal({"source": {"type": "url", "url": "http://x"}})
    assert refusal({"content": ""}) == "attachment 1 is empty; leave it out"
    for url in ("data:image/png,abc", "data:image/png;base64"):
        assert "data URL must be of the form" in refusal({"content": url})


def test_the_number_of_attachments_is_limited() -> None:
    limits = AttachmentLimits(count=2)
    assert len(accept_attachments([attached(b"x")] * 2, limits)) == 2
    assert refusal(*[attached(b"x")] * 3, limits=limits) == "3 attachments; at most 2 can be sent at once"


def test_each_kind_has_its_own_limit_to_the_byte() -> None:
    limits = AttachmentLimits(image_bytes=len(PNG), text_bytes=10)
    assert len(accept_attachments([attached(PNG), attached(b"x" * 10)], limits)) == 2
    assert refusal(attached(PNG + b"."), limits=limits) == (
        f"attachment 1 has {len(PNG) + 1} bytes; an image may have at most {len(PNG)}"
    )
    assert refusal(attached(b"x" * 11), limits=limits) == (
        "attachment 1 has 11 bytes; a text file may have 10, send a part of it"
    )


@pytest.mark.parametrize("extra", range(1, 9))
def test_all_together_have_a_limit_to_the_byte(extra: int) -> None:
    limits = AttachmentLimits(total_bytes=20)
    assert len(accept_attachments([attached(b"x" * 12), attached(b"y" * 8)], limits)) == 2
    said = refusal(attached(b"x" * 12), attached(b"y" * (8 + extra)), limits=limits)
    assert said == "attachment 2: the attachments have more than 20 bytes together"


def test_the_limits_are_what_clients_are_told() -> None:
    assert (CHAT_LIMITS.total_bytes, CHAT_LIMITS.image_bytes) == (19_464_192, 6_291_456)
    assert (CHAT_LIMITS.count, CHAT_LIMITS.text_bytes) == (20, 524_288)
    assert (SPAWN_LIMITS.count, SPAWN_LIMITS.total_bytes) == (50, 5_242_880)
    assert SPAWN_LIMITS.text_bytes == SPAWN_LIMITS.image_bytes == 1_048_576


def test_an_image_going_out_is_checked_too() -> None:
    assert image_block(PNG) == ImageBlock(b64(PNG), "image/png")
    assert image_block(b"text") is None
    assert image_block(b"%PDF-1") is None
    limits = AttachmentLimits(image_bytes=len(PNG) - 1)
    with pytest.raises(InvalidRequest, match="at most"):
        image_block(PNG, limits)
    assert image_block(PNG, AttachmentLimits(image_bytes=len(PNG))) is not None


def test_sniffing_needs_the_whole_signature() -> None:
    assert sniff(b"RIFF\x00\x00\x00\x00WAVE") is None
    assert sniff(b"RIFFabcdWAVE") == "text/plain"
    assert sniff(b"x" * 8192 + b"\x00") == "text/plain"
    assert sniff(b"x" * 8191 + b"\x00") is None
    assert sniff(b"\xff\xfe") is None
    assert sniff(b"II*\x00") == sniff(b"MM\x00*") == "image/tiff"
    assert sniff(b"\x1f\x8b\x08") == "application/gzip"


@settings(max_examples=200, deadline=None)
@given(
    st.binary(min_size=1, max_size=200),
    st.sampled_from(["", "image/png", "text/plain", "x/y"]),
    st.text(max_size=30),
)
def test_whatever_the_bytes_the_answer_is_a_block_or_a_plain_refusal(
    data: bytes, mime: str, name: str
) -> None:
    try:
        (block,) = accept_attachments([attached(data, mime, name)])
    except InvalidRequest as error:
        assert error.message.startswith("attachment 1")
        assert "\n" not in error.message
        return
    if isinstance(block, ImageBlock):
        assert base64.b64decode(block.data) == data
        assert block.mime_type in IMAGE_TYPES
    else:
        assert block.text.startswith("[Attached file: ")
        block.text.encode()


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["content", "mimeType", "fileName", "name", "data", "source", "type"]),
        st.one_of(
            st.none(),
            st.integers(),
            st.text(max_size=20),
            st.lists(st.text(max_size=3)),
            st.just({"data": 1}),
        ),
    )
)
def test_an_object_of_any_shape_never_crashes(item: dict[str, Any]) -> None:
    try:
        assert accept_attachments([item])
    except InvalidRequest as error:
        assert error.message
