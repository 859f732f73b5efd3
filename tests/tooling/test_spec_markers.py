"""The marker reader sees every place where a test can name a requirement."""

from __future__ import annotations

import pytest

from scripts.spec_markers import MarkerError, read_file


def proofs_of(source: str) -> list[tuple[str, str]]:
    return [(proof.test, proof.spec_id) for proof in read_file("tests/test_x.py", source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('@pytest.mark.spec("A-1", "A-2")\ndef test_a(): ...\n', [("test_a", "A-1"), ("test_a", "A-2")]),
        ('@mark.spec("A-1")\nasync def test_a(): ...\n', [("test_a", "A-1")]),
        ('@pytest.mark.spec("A-1")\ndef make_a(): ...\n', []),
        ('pytestmark = pytest.mark.spec("A-1")\ndef test_a(): ...\n', [("test_a", "A-1")]),
        (
            'pytestmark = [pytest.mark.spec("A-1"), pytest.mark.spec("A-2")]\ndef test_a(): ...\n',
            [("test_a", "A-1"), ("test_a", "A-2")],
        ),
        (
            '@pytest.mark.spec("A-1")\nclass TestBox:\n    @pytest.mark.spec("A-2")\n'
            "    def test_a(self): ...\n    def test_b(self): ...\n",
            [("TestBox::test_a", "A-1"), ("TestBox::test_a", "A-2"), ("TestBox::test_b", "A-1")],
        ),
        (
            'class TestBox:\n    pytestmark = pytest.mark.spec("A-1")\n    def test_a(self): ...\n',
            [("TestBox::test_a", "A-1")],
        ),
        (
            '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.spec("A-1"))])\n'
            "def test_a(x): ...\n",
            [("test_a", "A-1")],
        ),
        ('TestBox = pytest.mark.spec("A-1")(Machine.TestCase)\n', [("TestBox", "A-1")]),
        ('if True:\n    @pytest.mark.spec("A-1")\n    def test_a(): ...\n', [("test_a", "A-1")]),
        ('@pytest.mark.spec("A-1")\n@pytest.mark.spec("A-1")\ndef test_a(): ...\n', [("test_a", "A-1")]),
        ('@other.spec("A-1")\ndef test_a(): ...\n', []),
        ('def test_a():\n    pytest.mark.spec("A-1")\n', []),
    ],
)
def test_where_markers_count(source: str, expected: list[tuple[str, str]]) -> None:
    assert proofs_of(source) == expected


@pytest.mark.parametrize("mark", ["skip", 'skip("later")', "xfail", "xfail(strict=True)"])
def test_a_skipped_test_proves_nothing(mark: str) -> None:
    assert proofs_of(f'@pytest.mark.spec("A-1")\n@pytest.mark.{mark}\ndef test_a(): ...\n') == []
    assert proofs_of(f'pytestmark = [pytest.mark.{mark}, pytest.mark.spec("A-1")]\ndef test_a(): ...\n') == []


def test_one_skipped_case_among_others_leaves_the_proof() -> None:
    cases = "[pytest.param(1, marks=pytest.mark.skip), 2]"
    source = f'@pytest.mark.spec("A-1")\n@pytest.mark.parametrize("x", {cases})\ndef test_a(x): ...\n'
    assert proofs_of(source) == [("test_a", "A-1")]


def test_long_tests_are_told_apart() -> None:
    source = '@pytest.mark.spec("A-1")\n@pytest.mark.long\ndef test_a(): ...\n\n'
    source += '@pytest.mark.spec("A-1")\ndef test_b(): ...\n'
    assert [proof.is_long for proof in read_file("t.py", source)] == [True, False]


def test_a_proof_knows_the_line_of_its_id() -> None:
    source = '@pytest.mark.spec(\n    "A-1",\n    "A-2",\n)\ndef test_a(): ...\n'
    assert [(proof.spec_id, proof.line) for proof in read_file("t.py", source)] == [("A-1", 2), ("A-2", 3)]


@pytest.mark.parametrize(
    "marker", ["spec()", "spec(ID)", 'spec(*["A-1"])', 'spec(f"A-{1}")', 'spec(ids="A-1")']
)
def test_a_marker_that_cannot_be_read_is_refused_with_its_place(marker: str) -> None:
    with pytest.raises(MarkerError, match=r"^tests/test_x\.py:3: the spec marker"):
        read_file("tests/test_x.py", f"import pytest\n\n@pytest.mark.{marker}\ndef test_a(): ...\n")
