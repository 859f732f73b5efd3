"""`MEDIA:` lines of a reply: which count, what is left of the text, how a file is named."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.media import (
    LONGEST_PATH,
    MOST_FILES,
    MediaFile,
    MediaReading,
    media_file,
    refusal_note,
    take_media,
)


@pytest.mark.parametrize(
    ("text", "left", "paths"),
    [
        ("Here it is.\nMEDIA:cat.png", "Here it is.", ("cat.png",)),
        ("MEDIA:cat.png", "", ("cat.png",)),
        ("  MEDIA:  out/my cat.png  ", "", ("out/my cat.png",)),
        ("MEDIA:`cat.png`\nMEDIA:\"b.pdf\"\nMEDIA:'c'", "", ("cat.png", "b.pdf", "c")),
        ("a\n\nMEDIA:x\n\nb", "a\n\n\nb", ("x",)),
        ("a\r\nMEDIA:x\r\nb", "a\r\nb", ("x",)),
        ("```\nMEDIA:x\n```\nMEDIA:y", "```\nMEDIA:x\n```", ("y",)),
    ],
)
def test_lines_that_count(text: str, left: str, paths: tuple[str, ...]) -> None:
    assert take_media(text) == MediaReading(left, paths)


@pytest.mark.parametrize(
    "text",
    ["plain", "", "see MEDIA:x", "media:x", "MEDIA:", "MEDIA:``", "MEDIA x", "```\nMEDIA:x", "\nMEDIAS:x\n"],
)
def test_text_that_names_no_file_is_left_alone(text: str) -> None:
    assert take_media(text) == MediaReading(text)


def test_there_is_a_limit_to_files_and_to_a_path() -> None:
    lines = [f"MEDIA:{number}" for number in range(MOST_FILES + 1)]
    reading = take_media("\n".join(lines))
    assert reading.paths == tuple(str(number) for number in range(MOST_FILES))
    assert reading.text == f"MEDIA:{MOST_FILES}"
    assert take_media("MEDIA:" + "a" * LONGEST_PATH).paths == ("a" * LONGEST_PATH,)
    assert take_media("MEDIA:" + "a" * (LONGEST_PATH + 1)).paths == ()


@given(st.lists(st.sampled_from(["MEDIA:a", "MEDIA:", "word", "```", "  ", ""]), max_size=30))
@settings(max_examples=200, deadline=None)
def test_nothing_but_those_lines_is_taken(lines: list[str]) -> None:
    reading = take_media("\n".join(lines))
    assert reading.text.count("word") == lines.count("word") and reading.text.count("```") == lines.count(
        "```"
    )
    assert reading.text.count("MEDIA:a") + len(reading.paths) == lines.count("MEDIA:a")
    assert take_media(reading.text).text.count("word") == lines.count("word")


@pytest.mark.parametrize(
    ("path", "name", "mime"),
    [
        ("out/Cat.PNG", "Cat.PNG", "image/png"),
        ("a.jpeg", "a.jpeg", "image/jpeg"),
        ("a/b/notes.md", "notes.md", "text/markdown"),
        ("png", "png", "application/octet-stream"),
        ("x.unknown", "x.unknown", "application/octet-stream"),
        ("dir/", "dir", "application/octet-stream"),
        ("/", "file", "application/octet-stream"),
    ],
)
def test_a_file_is_named_by_its_last_part(path: str, name: str, mime: str) -> None:
    assert media_file(path, "/home/agent") == MediaFile(name, mime, path, "/home/agent")


def test_a_refusal_names_file_and_reason() -> None:
    assert refusal_note("a.txt", "it is empty") == "[a.txt was not sent: it is empty]"
