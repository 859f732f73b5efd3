"""The event-stream parser: the format, any chunking, and its limits."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.models.sse import SseEvent, SseOverflow, SseParser


def parse(*chunks: bytes, close: bool = True) -> list[SseEvent]:
    parser = SseParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.close() if close else events


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\n", [SseEvent(b"a")]),
        (b"data:a\n\n", [SseEvent(b"a")]),
        (b"data:  a \n\n", [SseEvent(b" a ")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [SseEvent(b"a"), SseEvent(b"b")]),
        (b"data: a\r\rdata: b\r\r", [SseEvent(b"a"), SseEvent(b"b")]),
        (b"data: a\ndata: b\n\n", [SseEvent(b"a\nb")]),
        (b"data\n\n", [SseEvent(b"")]),
        (b"data: a\ndata\ndata: b\n\n", [SseEvent(b"a\n\nb")]),
        (b": keep alive\n\n:\ndata: a\n\n", [SseEvent(b"a")]),
        (b"event: ping\ndata: {}\n\ndata: a\n\n", [SseEvent(b"{}", "ping"), SseEvent(b"a")]),
        (b"event: lost\n\ndata: a\n\n", [SseEvent(b"a")]),
        (b"id: 1\nretry: 5\nfoo: bar\ndatax: no\ndata: a\n\n", [SseEvent(b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [SseEvent(b"a")]),
        (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [SseEvent(b"a")]),
        (b"data: x:y\n\n", [SseEvent(b"x:y")]),
        (b"data: \xff\xfe\n\n", [SseEvent(b"\xff\xfe")]),
        (b"event: \xff\ndata: a\n\n", [SseEvent(b"a", "\ufffd")]),
        (b"", []),
        (b"\n\n\n", []),
        (b"<html>\n<p>no events</p>\n", []),
    ],
)
def test_the_format(stream: bytes, expected: list[SseEvent]) -> None:
    assert parse(stream) == expected
    single_bytes = [stream[position : position + 1] for position in range(len(stream))]
    assert parse(*single_bytes) == expected


def test_an_event_is_out_as_soon_as_its_blank_line_is_in() -> None:
    parser = SseParser()
    assert parser.feed(b"data: a\n") == []
    assert parser.feed(b"\ndata: b") == [SseEvent(b"a")]
    assert parser.feed(b"\r") == []
    # The CR ended the line; its LF must not count as a blank line.
    assert parser.feed(b"\n") == []
    assert parser.feed(b"") == []
    assert parser.feed(b"\n") == [SseEvent(b"b")]


def test_the_end_of_the_stream_gives_what_was_left_open_once() -> None:
    parser = SseParser()
    assert parser.feed(b"event: last\ndata: a\ndata: b") == []
    assert parser.close() == [SseEvent(b"a\nb", "last")]
    assert parser.close() == []
    assert parse(b"data: a\n") == [SseEvent(b"a")]
    assert parse(b"data: a\n", close=False) == []


def test_limits_are_exact() -> None:
    parser = SseParser(max_event_bytes=10)
    assert parser.feed(b"data: 1234") == []
    with pytest.raises(SseOverflow, match="line is longer than 10 bytes"):
        parser.feed(b"5")
    parser = SseParser(max_event_bytes=10)
    assert parser.feed(b"data: 1234\ndata: 1234\n\n") == [SseEvent(b"1234\n1234")]
    assert parser.feed(b"data: 123\ndata: 123\n\n") == [SseEvent(b"123\n123")]
    with pytest.raises(SseOverflow, match="event is longer than 10 bytes"):
        parser.feed(b"data: 1234\ndata: 12345\n\n")
    parser = SseParser(max_stream_bytes=8)
    assert parser.feed(b"data: a\n") == []
    with pytest.raises(SseOverflow, match="stream is longer than 8 bytes"):
        parser.feed(b"\n")


def test_a_long_line_in_small_chunks_costs_linear_time() -> None:
    def seconds(size: int) -> float:
        parser = SseParser()
        chunk = b"x" * 16
        start = time.process_time()
        parser.feed(b"data: ")
        for _ in range(size // 16):
            parser.feed(chunk)
        assert len(parser.feed(b"\n\n")[0].data) == size
        return time.process_time() - start

    small = min(seconds(1 << 18) for _ in range(3))
    large = min(seconds(1 << 21) for _ in range(3))
    # Eight times the bytes; a quadratic parser would take sixty-four times as long.
    assert large < 30 * small


@settings(max_examples=200, deadline=None)
@given(
    lines=st.lists(
        st.sampled_from(
            [b"data: \xf0\x9f\x98\x80", b"data: b", b"event: e", b": c", b"", b"", b"data", b"junk"]
        ),
        max_size=20,
    ),
    ends=st.lists(st.sampled_from([b"\n", b"\r\n", b"\r"]), min_size=20, max_size=20),
    cuts=st.lists(st.integers(0, 300), max_size=12),
)
def test_chunking_never_changes_the_events(lines: list[bytes], ends: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + end for line, end in zip(lines, ends, strict=False))
    # Two blank lines written as CR and LF are one line end: the plain reference must agree on that.
    edges = [0, *sorted(cut for cut in cuts if cut <= len(stream)), len(stream)]
    chunks = [stream[start:stop] for start, stop in itertools.pairwise(edges)]
    whole = parse(stream)
    assert parse(*chunks) == whole
    assert whole == reference(stream)


def reference(stream: bytes) -> list[SseEvent]:
    """The format written down plainly, over the whole text at once."""
    events: list[SseEvent] = []
    data: list[bytes] = []
    name = ""
    for line in [*stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), b""]:
        if line == b"":
            if data:
                events.append(SseEvent(b"\n".join(data), name))
            data, name = [], ""
        elif line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif line == b"data":
            data.append(b"")
        elif line.startswith(b"event:"):
            name = line[6:].removeprefix(b" ").decode()
    return events


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=10))
def test_any_bytes_are_read_without_an_error(chunks: list[bytes]) -> None:
    assert parse(*chunks) == parse(b"".join(chunks))
