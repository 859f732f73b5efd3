"""The head of a SKILL.md, and the list that a prompt holds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.skills import (
    MAX_DESCRIPTION_CHARS,
    MAX_LIST_CHARS,
    MAX_LISTED,
    MAX_NAME_CHARS,
    Skill,
    SkillHead,
    SkillList,
    SkillProblem,
    list_skills,
    read_skill,
)


def head(*lines: str, body: str = "Do it well.") -> str:
    return "\n".join(("---", *lines, "---", body))


@pytest.mark.spec("LOOP-2")
class TestReading:
    @pytest.mark.parametrize(
        ("lines", "name", "description"),
        [
            (("name: tea", "description: Make tea"), "tea", "Make tea"),
            (("name:   tea  ", "description:\tMake tea "), "tea", "Make tea"),
            (('name: "tea"', 'description: "Make \\"good\\" tea"'), "tea", 'Make "good" tea'),
            (('name: "t\\q"', 'description: ""quoted""'), "t\\q", '"quoted"'),
            (("name: 'tea'", "description: 'it''s tea'"), "tea", "it's tea"),
            (("name: tea", "description: >-", "  Make", "", "  tea"), "tea", "Make tea"),
            (("name: tea", "description: |2", "  Make tea"), "tea", "Make tea"),
            (("name: tea", "description: >good", "  tea"), "tea", ">good tea"),
            (("name: tea", "description: Make", "  tea: green"), "tea", "Make tea: green"),
            (("Name: tea", "DESCRIPTION: x"), "tea", "x"),
            (("name: tea", "name: coffee", "description: x", "description:", "  y"), "tea", "x"),
            (("# a note", "metadata:", "  name: wrong", "name: tea", "- odd", "description: x"), "tea", "x"),
            (("name: tea", "description: 'x"), "tea", "'x"),
            (("name: tea", "description: x: y"), "tea", "x: y"),
            (("name:tea", "name: t", "description: '"), "t", "'"),
        ],
    )  # fmt: skip
    def test_what_people_write(self, lines: tuple[str, ...], name: str, description: str) -> None:
        assert read_skill(head(*lines)) == SkillHead(name, description)

    def test_windows_ends_a_mark_at_the_beginning_and_blanks_after_the_dashes(self) -> None:
        text = "\ufeff---  \r\nname: tea\r\ndescription: x\r\n--- \r\n---\r\nname: no"
        assert read_skill(text) == SkillHead("tea", "x")

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("", "does not begin with a line of three dashes"),
            ("# Tea", "does not begin with a line of three dashes"),
            ("\n---\nname: tea", "does not begin with a line of three dashes"),
            ("----\nname: tea\n---", "does not begin with a line of three dashes"),
            ("---\nname: tea\ndescription: x", "its head has no end"),
            ("---\nname: tea\ndescription: x\n ---", "its head has no end"),
            (head("description: x"), "write `name: …`"),
            (head("name:", "description: x"), "write `name: …`"),
            (head(" name: tea", "description: x"), "write `name: …`"),
            (head("name: tea"), "write `description: …`"),
            (head("name: tea", "description: ''"), "write `description: …`"),
            (head(f"name: {'n' * (MAX_NAME_CHARS + 1)}", "description: x"), "longer than 64 characters"),
        ],
        ids=range(12),
    )
    def test_what_cannot_be_listed_says_why(self, text: str, told: str) -> None:
        problem = read_skill(text)
        assert isinstance(problem, SkillProblem) and told in problem.reason

    def test_limits_are_exact(self) -> None:
        name, description = "n" * MAX_NAME_CHARS, "d" * (MAX_DESCRIPTION_CHARS + 1)
        found = read_skill(head(f"name: {name}", f"description: {description}"))
        assert found == SkillHead(name, "d" * MAX_DESCRIPTION_CHARS)
        assert (MAX_NAME_CHARS, MAX_DESCRIPTION_CHARS, MAX_LISTED, MAX_LIST_CHARS) == (64, 1024, 100, 18_000)

    @given(
        st.text(alphabet=st.sampled_from("-\n: '\"|>\\ntame\x00\ud800 \r"), max_size=200),
        st.text(max_size=80),
    )
    @settings(max_examples=300, deadline=None)
    def test_no_text_breaks_it_and_what_it_gives_is_one_line(self, lines: str, more: str) -> None:
        for text in (lines, head(lines, f"name: {more}", f"description: {lines}{more}")):
            found = read_skill(text)
            if isinstance(found, SkillHead):
                assert found.name and found.description
                assert len(found.name) <= MAX_NAME_CHARS and "\n" not in found.name + found.description


@pytest.mark.spec("LOOP-2")
class TestListing:
    def test_name_description_and_path(self) -> None:
        skills = [Skill("tea", "Make tea", "skills/a/SKILL.md"), Skill("b", "x", "skills/b/SKILL.md")]
        made = list_skills(skills, "# Skills")
        assert made.text == ("# Skills\n\n- tea: Make tea (skills/a/SKILL.md)\n- b: x (skills/b/SKILL.md)")
        assert made.shown == (
            ("tea", "- tea: Make tea (skills/a/SKILL.md)"),
            ("b", "- b: x (skills/b/SKILL.md)"),
        )
        assert list_skills([], "# Skills") == SkillList()

    def test_not_more_than_a_hundred(self) -> None:
        for count, more in ((MAX_LISTED, None), (MAX_LISTED + 3, "- and 3 more below skills/")):
            made = list_skills([Skill(f"s{at}", "x", "p") for at in range(count)], "# Skills")
            assert len(made.shown) == MAX_LISTED
            last = made.text.splitlines()[-1]
            assert last.startswith(more) if more else last == f"- s{MAX_LISTED - 1}: x (p)"

    def test_not_more_characters_than_there_is_room_and_nothing_after_the_first_that_is_left_out(
        self,
    ) -> None:
        line = len("- a:  (p)")
        fits = Skill("a", "d" * (MAX_LIST_CHARS - line), "p")
        assert len(list_skills([fits], "").shown) == 1
        assert list_skills([Skill("a", fits.description + "d", "p")], "") == SkillList()
        half = Skill("a", "d" * (MAX_LIST_CHARS // 2), "p")
        made = list_skills([half, half, Skill("b", "", "p")], "")
        assert [name for name, _ in made.shown] == ["a"]
        assert made.text.endswith("- and 2 more below skills/, which are not listed here")
        # The second of two halves fits to the character, with its line break.
        rest = MAX_LIST_CHARS - (line + len(half.description) + 1)
        both = list_skills([half, Skill("a", "d" * (rest - line), "p")], "")
        assert len(both.shown) == 2
        assert len(list_skills([half, Skill("a", "d" * (rest - line + 1), "p")], "").shown) == 1
