"""The page's files as they leave: lighter than they are written, and the same program."""

from __future__ import annotations

import re

import pytest

from openclaw.gateway.http.files import lighten, read_pages


@pytest.mark.parametrize(
    ("source", "served"),
    [
        ("a;\n  b;\n", "a;\nb;\n"),
        ("const a = { b: [1, 2] };", "const a={b:[1,2]};"),
        ("if (a === -1 && !b) return x in [c];", "if(a===-1&&!b)return x in[c];"),
        ('f("a = { b }", c => d);', 'f("a = { b }",c=>d);'),
        ('f("a = " + \'"\');', 'f("a = " + \'"\');'),
        ("const a = / = /;", "const a = / = /;"),
        ("const a = `b = ${ c }`;", "const a = `b = ${ c }`;"),
        ("/** What. */\nf();", "\nf();"),
        ("/**\n * What.\n * Why.\n */\nf();", "\n\n\n\nf();"),
        ("  // Why\n  f();", "\nf();"),
        ("f( ); // why", "f( ); // why"),
        ("f('/* no */');", "f('/* no */');"),
        ("/* a */ f();", "f();"),
        ("/* a\n b */ f();", "\nf();"),
        ("const u = 'http://x';", "const u = 'http://x';"),
        ("/* open\nf();", "\n"),
        ("", ""),
    ],
)
def test_comments_and_blanks_at_the_front_are_left_out(source: str, served: str) -> None:
    assert lighten(source) == served
    assert served.count("\n") == source.count("\n")


def test_blanks_in_a_sheet_are_left_out_where_they_mean_nothing() -> None:
    source = "a > b, c :hover { d: e f; --g: calc(1px + 2px); }\n  @media (max-width: 9px) { h { i: j } }"
    served = "a > b,c :hover{d:e f;--g:calc(1px + 2px);}\n@media (max-width:9px){h{i:j}}"
    assert lighten(source, sheet=True) == served


def test_no_file_of_the_page_has_a_text_that_goes_over_lines() -> None:
    """What stands inside such a text would lose its blanks."""
    pages = read_pages().by_path
    scripts = [name for name in pages if name.endswith(".js")]
    assert {"app.js", "wire.js", "dom.js"} <= set(scripts)
    for name in scripts:
        for number, line in enumerate(pages[name].data.decode().split("\n"), 1):
            plain = re.sub(r"\\.", "", line)
            code = re.sub(r"\"[^\"]*\"|'[^']*'|/[^/]*\[[^\]]*\][^/]*/|/`\+/|`{3,}", "", plain)
            assert code.count("`") % 2 == 0, f"{name}:{number}"
    assert b"/**" not in pages["dom.js"].data
