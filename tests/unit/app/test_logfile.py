"""The log on disk: masked, one line per record, bounded, and never in anybody's way."""

from __future__ import annotations

import json
import logging
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openclaw.app.logfile import MAX_RECORD_CHARS, LogFile
from openclaw.gateway.logtail import CURRENT, read_page, segments

SECRET = "correct-horse-battery-staple"
Json = dict[str, Any]
Write = Callable[..., LogFile]


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    made = logging.Logger("openclaw.test", logging.INFO)
    yield made
    for handler in made.handlers:
        handler.close()


def records(folder: Path) -> list[Json]:
    return [json.loads(line) for line in read_page(folder, limit=5000, max_bytes=1 << 20).lines]


def opened(logger: logging.Logger, folder: Path, **options: Any) -> LogFile:
    handler = LogFile(folder, lambda: frozenset((SECRET,)), **options)
    logger.addHandler(handler)
    return handler


@pytest.mark.spec("TRX-11")
def test_secrets_are_masked_by_value_and_by_shape(tmp_path: Path, logger: logging.Logger) -> None:
    handler = opened(logger, tmp_path / "logs")
    logger.info("the token is %s", SECRET)
    logger.warning('asked with "authorization": "Bearer abcdefghijklmnopqrstuvwx"')
    logger.error("key sk-ant-REDACTED was refused")
    try:
        raise ValueError(f"cannot use {SECRET}")
    except ValueError:
        logger.exception("it failed")
    handler.close()
    text = (tmp_path / "logs" / CURRENT).read_text(encoding="utf-8")
    assert SECRET not in text and "abcdefghijklmnopqrstuvwx" not in text and "0123456789" not in text
    found = records(tmp_path / "logs")
    assert [one["level"] for one in found] == ["info", "warning", "error", "error"]
    assert found[0]["message"].startswith("the token is ")
    assert found[3]["message"].startswith("it failed\nTraceback")
    assert "ValueError: cannot use" in found[3]["message"]
    assert found[0]["name"] == "openclaw.test"
    assert found[0]["time"].endswith("Z") and found[0]["time"][10] == "T"


def test_a_record_is_one_line_whatever_it_holds(tmp_path: Path, logger: logging.Logger) -> None:
    handler = opened(logger, tmp_path)
    logger.info('first\nsecond {"level": "error"}\r\x00\u2028 \ud800')
    logger.info("wrong %d", "number")
    logger.info("x" * (3 * MAX_RECORD_CHARS))
    handler.close()
    first, second, third = records(tmp_path)
    assert first["message"].startswith("first\nsecond")
    assert second["message"] == "wrong %d"
    assert len(third["message"]) == MAX_RECORD_CHARS + 1
    assert (tmp_path / CURRENT).read_bytes().count(b"\n") == 3


@pytest.mark.spec("TRX-11")
def test_a_secret_at_the_cut_of_a_long_record_is_masked(tmp_path: Path, logger: logging.Logger) -> None:
    handler = opened(logger, tmp_path)
    logger.info("%s%s%s", "x" * (MAX_RECORD_CHARS - 10), SECRET, "y" * MAX_RECORD_CHARS)
    handler.close()
    assert SECRET[:10] not in (tmp_path / CURRENT).read_text(encoding="utf-8")


def test_files_are_private(tmp_path: Path, logger: logging.Logger) -> None:
    handler = opened(logger, tmp_path / "state" / "logs")
    logger.info("hello")
    handler.close()
    assert stat.S_IMODE((tmp_path / "state" / "logs").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "state" / "logs" / CURRENT).stat().st_mode) == 0o600


def test_nothing_is_written_before_there_is_something_to_say(tmp_path: Path, logger: logging.Logger) -> None:
    handler = opened(logger, tmp_path / "logs")
    handler.close()
    handler.close()
    assert not (tmp_path / "logs").exists()


def test_files_are_bounded_in_size_and_number(tmp_path: Path, logger: logging.Logger) -> None:
    handler = opened(logger, tmp_path, max_file_bytes=1000, kept_files=2)
    for number in range(100):
        logger.info("record %d", number)
    handler.close()
    parts = segments(tmp_path)
    assert len(parts) == 3
    assert all(part.size <= 1000 for part in parts)
    assert [part.end for part in parts[:-1]] == [part.start for part in parts[1:]]
    assert parts[0].start > 0  # the oldest are gone
    numbers = [int(one["message"].split()[1]) for one in records(tmp_path)]
    assert numbers == list(range(numbers[0], 100))
    # A gateway that starts again goes on in the same file.
    again = opened(logger, tmp_path, max_file_bytes=1000, kept_files=2)
    logger.info("record 100")
    again.close()
    assert records(tmp_path)[-1]["message"] == "record 100"
    assert len(segments(tmp_path)) <= 3


def test_a_full_line_loses_records_and_says_how_many(tmp_path: Path, logger: logging.Logger) -> None:
    hold = threading.Event()
    asked = threading.Event()

    def slow_secrets() -> frozenset[str]:
        asked.set()
        hold.wait(60)
        return frozenset()

    handler = LogFile(tmp_path, slow_secrets, max_waiting=2)
    logger.addHandler(handler)
    logger.info("first")
    assert asked.wait(60)
    for number in range(5):
        logger.info("more %d", number)  # two fit into the line
    hold.set()
    handler.close()
    messages = [one["message"] for one in records(tmp_path)]
    assert messages == ["first", "3 log records were lost", "more 0", "more 1"]


def test_a_disk_that_refuses_stops_nobody_and_is_remembered(tmp_path: Path, logger: logging.Logger) -> None:
    folder = tmp_path / "logs"
    folder.write_text("a file where the folder should be", encoding="utf-8")
    handler = opened(logger, folder)
    logger.info("lost")
    logger.info("lost too")
    handler.close()
    folder.unlink()
    assert folder.parent.exists()
    again = opened(logger, folder)
    logger.info("kept")
    again.close()
    assert [one["message"] for one in records(folder)] == ["kept"]
