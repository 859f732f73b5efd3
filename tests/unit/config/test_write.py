"""Replacing the file: validated, atomic, private, never over someone else's change (CFG-6)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from openclaw.config.edit import set_value
from openclaw.config.load import MAX_FILE_BYTES, load, load_or_raise
from openclaw.config.write import MAX_REJECTED_FILES, ensure_token, write_config
from openclaw.errors import ConfigInvalid, StoreReadOnly, VersionConflict

GOOD = "// mine\n{session: {mainKey: 'one'}}\n"
NOW = 1_700_000_000.123
STAMP = "2023-11-14T22-13-20.123Z"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "openclaw.json"
    file.write_text(GOOD)
    file.chmod(0o644)
    return file


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


@pytest.mark.spec("CFG-6")
def test_a_good_text_replaces_the_file(path: Path) -> None:
    before = load_or_raise(path, {})
    new_text = set_value(before.raw_text, "session.mainKey", "two")
    written = write_config(path, new_text, {}, expected_hash=before.hash)
    assert path.read_text() == '// mine\n{session: {mainKey: "two"}}\n'
    assert written == load_or_raise(path, {})
    assert written.config.session.main_key == "two"
    assert mode_of(path) == 0o600
    backup = path.with_name("openclaw.json.bak")
    assert backup.read_text() == GOOD
    assert mode_of(backup) == 0o600
    assert sorted(file.name for file in path.parent.iterdir()) == ["openclaw.json", "openclaw.json.bak"]


@pytest.mark.spec("CFG-6")
def test_a_rejected_text_is_kept_aside_and_never_goes_live(path: Path) -> None:
    before = load(path, {})
    with pytest.raises(ConfigInvalid) as caught:
        write_config(path, "{\nsesion: {},\nport: 1}", {}, expected_hash=before.hash, clock=lambda: NOW)
    kept = path.with_name(f"openclaw.json.rejected.{STAMP}")
    assert caught.value.fields["rejected"] == str(kept)
    assert [str(problem) for problem in load(kept, {}).problems] == [
        line.replace(str(path), str(kept)) for line in str(caught.value).splitlines()
    ]
    assert (kept.read_text(), mode_of(kept)) == ("{\nsesion: {},\nport: 1}", 0o600)
    assert load(path, {}) == before
    assert not path.with_name("openclaw.json.bak").exists()


@pytest.mark.spec("CFG-6")
def test_only_the_newest_rejected_texts_are_kept(path: Path) -> None:
    for second in range(MAX_REJECTED_FILES + 3):
        with pytest.raises(ConfigInvalid):
            write_config(
                path, f"{{x{second}: 1}}", {}, expected_hash="", clock=iter([float(second)]).__next__
            )
    kept = sorted(file.read_text() for file in path.parent.glob("*.rejected.*"))
    assert kept == [f"{{x{second}: 1}}" for second in range(3, MAX_REJECTED_FILES + 3)]


@pytest.mark.spec("CFG-6")
def test_someone_elses_change_is_not_overwritten(path: Path) -> None:
    before = load(path, {})
    path.write_text("{}")
    with pytest.raises(VersionConflict, match="changed since it was read"):
        write_config(path, GOOD, {}, expected_hash=before.hash)
    assert path.read_text() == "{}"
    with pytest.raises(VersionConflict):
        write_config(path, GOOD, {}, expected_hash="")
    path.unlink()
    with pytest.raises(VersionConflict):
        write_config(path, GOOD, {}, expected_hash=before.hash)
    assert not path.exists()


@pytest.mark.spec("CFG-6")
def test_a_failed_replace_leaves_everything_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = load(path, {})

    def fail(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_config(path, "{}", {}, expected_hash=before.hash)
    assert path.read_text() == GOOD
    assert [file.name for file in path.parent.iterdir()] == ["openclaw.json"]


@pytest.mark.spec("CFG-6")
def test_a_file_that_cannot_be_read_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "openclaw.json"
    os.mkfifo(target)
    with pytest.raises(ConfigInvalid, match="not a file"):
        write_config(target, "{}", {}, expected_hash="")
    assert stat.S_ISFIFO(target.stat().st_mode)


@pytest.mark.spec("CFG-6")
def test_text_that_cannot_be_stored_is_refused(path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="half of a surrogate pair"):
        write_config(path, "{} // \ud800", {}, expected_hash=load(path, {}).hash)
    assert path.read_text() == GOOD


@pytest.mark.spec("CFG-6")
def test_a_text_that_could_not_be_read_again_is_refused(path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="larger than 4 MiB"):
        write_config(path, "{}" + " " * MAX_FILE_BYTES, {}, expected_hash=load(path, {}).hash)
    assert path.read_text() == GOOD


@pytest.mark.spec("CFG-6")
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "claw.json5"
    real.parent.mkdir()
    real.write_text("{}")
    link = tmp_path / "openclaw.json"
    link.symlink_to(real)
    write_config(link, GOOD, {}, expected_hash=load(link, {}).hash)
    assert link.is_symlink()
    assert real.read_text() == GOOD
    assert (real.parent / "claw.json5.bak").read_text() == "{}"


@pytest.mark.spec("CFG-6")
def test_a_new_file_and_its_directory_are_private(tmp_path: Path) -> None:
    target = tmp_path / "state" / "openclaw.json"
    written = write_config(target, GOOD, {}, expected_hash="")
    assert written.exists
    assert (mode_of(target), mode_of(target.parent)) == (0o600, 0o700)
    assert not target.with_name("openclaw.json.bak").exists()


@pytest.mark.spec("CFG-6", "CFG-7")
def test_the_first_start_writes_a_token(tmp_path: Path) -> None:
    target = tmp_path / ".openclaw" / "openclaw.json"
    first = ensure_token(target, {})
    token = first.loaded.config.gateway.auth.token
    assert first.generated
    assert token is not None
    assert len(token) == 43
    assert (mode_of(target), mode_of(target.parent)) == (0o600, 0o700)
    assert (
        target.read_text()
        == '{\n  "gateway": {\n    "auth": {\n      "token": "' + token + '"\n    }\n  }\n}\n'
    )
    second = ensure_token(target, {})
    assert not second.generated
    assert second.loaded.config.gateway.auth.token == token
    assert ensure_token(tmp_path / "other.json", {}).loaded.config.gateway.auth.token != token


@pytest.mark.spec("CFG-6")
def test_the_token_is_added_beside_comments(path: Path) -> None:
    asked: list[int] = []

    def new_token(size: int) -> str:
        asked.append(size)
        return "generated"

    ensured = ensure_token(path, {}, new_token=new_token)
    assert ensured.generated
    assert path.read_text() == (
        "// mine\n{session: {mainKey: 'one'}, gateway: {\n  auth: {\n    token: \"generated\"\n  }\n}}\n"
    )
    assert asked == [32]


@pytest.mark.spec("CFG-7")
@pytest.mark.parametrize("auth", ["token: 't'", "password: 'p'", "mode: 'none'", "token: '${T}'"])
def test_a_credential_or_an_explicit_choice_is_left_alone(path: Path, auth: str) -> None:
    text = f"{{gateway: {{auth: {{{auth}}}}}}}"
    path.write_text(text)
    assert not ensure_token(path, {"T": "from-the-environment"}).generated
    assert path.read_text() == text


@pytest.mark.spec("CFG-7")
def test_a_missing_token_beyond_loopback_is_repaired(path: Path) -> None:
    path.write_text("{gateway: {bind: 'lan'}}")
    assert load(path, {}).problems
    ensured = ensure_token(path, {})
    assert ensured.generated
    assert ensured.loaded.config.gateway.bind == "lan"
    assert load(path, {}).problems == ()


@pytest.mark.spec("CFG-3", "CFG-6")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{sesion: {}}",
        "[]",
        "{gateway: 5}",
        "{gateway: {auth: []}}",
        "{gateway: {auth: {token: '${NOT_SET}'}}}",
        "{gateway: {auth: {password: 5}}}",
    ],
)
def test_a_broken_file_is_never_touched(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(ConfigInvalid):
        ensure_token(path, {})
    assert path.read_text() == text
    assert [file.name for file in path.parent.iterdir()] == ["openclaw.json"]


@pytest.mark.spec("CFG-6")
def test_a_place_that_cannot_be_written_is_named_with_the_way_out() -> None:
    with pytest.raises(StoreReadOnly, match="OPENCLAW_STATE_DIR") as refused:
        ensure_token(Path("/proc/openclaw-test/openclaw.json"), {})
    assert "/proc/openclaw-test/openclaw.json" in refused.value.message
