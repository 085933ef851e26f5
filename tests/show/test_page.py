"""Templates: what is done to text and numbers on their way into a page."""

import pytest
from jinja2 import UndefinedError

from pseudomallows.show.page import LONGEST_NAME, TEMPLATES, across, percent, plain, render, whole

MACROS = TEMPLATES.get_template("macros.html").module


def test_a_long_name_is_cut_between_words_and_given_in_full_in_its_title():
    words = "a name that is much too long to be shown at once"
    assert MACROS.name(words, 10) == f'<bdi title="{words}">a name…</bdi>'
    assert MACROS.name("short", 10) == "<bdi>short</bdi>"


def test_names_are_escaped_in_text_and_in_attributes():
    assert MACROS.name('"<', 1) == '<bdi title="&#34;&lt;">…</bdi>'
    assert MACROS.name("<b>&") == "<bdi>&lt;b&gt;&amp;</bdi>"
    assert 'aria-label="&#34;x"' in MACROS.bar(0.5, '"x')


def test_strange_text_becomes_one_plain_line():
    assert len(plain("x" * 10_000)) == LONGEST_NAME
    assert plain("") == plain("\u202e\n") == "(no name)"
    assert plain("👩‍👩‍👧") == "👩‍👩‍👧"


def test_a_text_that_may_be_longer_is_cut_later():
    command = "pseudomallows fit " + "x" * 1000
    assert plain(command, 4000) == command
    assert plain("y" * 5000, 4000) == "y" * 3999 + "…"


def test_shares_are_never_rounded_to_all_or_nothing():
    assert [percent(share) for share in (0, 1e-6, 0.5, 0.9999, 1)] == [
        "0\u00a0%",
        "under 0.1\u00a0%",
        "50\u00a0%",
        "over 99\u00a0%",
        "100\u00a0%",
    ]


def test_numbers_and_places():
    assert whole(1234567) == "1,234,567"
    assert [across(share) for share in (-0.1, 0.25, 2.0)] == ["0.00%", "25.00%", "100.00%"]


@pytest.mark.parametrize(
    ("names", "n_more", "words"),
    [
        (["a"], 0, "a"),
        (["a", "b"], 0, "a and b"),
        (["a", "b", "c"], 0, "a, b and c"),
        (["a", "b"], 3, "a, b and 3 more"),
    ],
)
def test_names_are_listed_as_in_a_sentence(names, n_more, words):
    listed = MACROS.listed(names, n_more)
    assert listed.replace("<bdi>", "").replace("</bdi>", "") == words


def test_a_figure_that_is_missing_is_an_error():
    with pytest.raises(UndefinedError, match="is undefined"):
        render("report.html")
