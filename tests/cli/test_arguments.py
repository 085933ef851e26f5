"""Arguments that several commands share."""

import argparse

import pytest

from clihelp import run
from pseudomallows.cli.arguments import count, count_or_auto, seed
from pseudomallows.sampling.options import OPTIONS


def test_counts_and_seeds_are_whole_numbers():
    assert (count("3"), seed("0"), count_or_auto("auto"), count_or_auto("2")) == (3, 0, "auto", 2)
    for check, text in ((count, "0"), (count, "2.5"), (seed, "-1"), (count_or_auto, "many")):
        with pytest.raises(argparse.ArgumentTypeError, match="must be a whole number"):
            check(text)


def test_the_help_of_fit_has_each_method_and_its_options_in_words(capsys):
    with pytest.raises(SystemExit):
        run("fit", "--help")
    shown = capsys.readouterr().out
    for words in ("pseudo    Pseudo-Mallows", "balanced  balanced", "mcmc      the exact model"):
        assert words in shown
    for option in OPTIONS:
        assert f"    {option.name}: " in shown
    assert max(map(len, shown.splitlines())) <= 90


# What several commands do


def test_a_column_of_ratings_is_told_once(here, capsys):
    with open("ratings.csv", "w") as stream:
        stream.write("userId,movieId,rating\na,x,5\na,y,1\nb,y,4\n")
    for arguments in (["info"], ["split", "--out", "parts"]):
        assert run(*arguments, "ratings.csv", "--quiet") == 0
        assert capsys.readouterr().err.splitlines() == [
            "pseudomallows: warning: ratings.csv: column 'rating' is ignored, every row counts as "
            "a click, also the 1 of 3 whose rating is below 3, the middle of 1 to 5: give "
            "min_rating=3 to leave these out"
        ]


def test_what_was_read_is_said_unless_the_kind_is_given(clicks, capsys):
    for more, words in (
        ([], f"{clicks}: read as clicks: Clicks(60 users"),
        (["--kind", "clicks"], ""),
    ):
        assert run("split", clicks, "--out", f"parts{len(more)}", *more) == 0
        assert words in capsys.readouterr().err.splitlines()[0]


@pytest.mark.parametrize("name", ["split", "evaluate"])
def test_a_command_for_clicks_says_that_the_file_holds_rankings(here, capsys, name):
    (here / "r.csv").write_text("a,b,c\n1,2,3\n3,2,1\n")
    more = ["--out", "parts"] if name == "split" else []
    assert run(name, "r.csv", *more, "--quiet") == 1
    wanted = f"pseudomallows: {name} needs clicks, and r.csv holds rankings\n"
    assert capsys.readouterr().err == wanted


def test_what_cannot_be_written_is_called_by_its_name(model, capsys):
    for name, source, what in (("fit", "c.csv", "model"), ("report", model, "report")):
        assert run(name, source, "--out", "-") == 1
        said = f"pseudomallows: a {what} cannot go to standard output: name a file\n"
        assert capsys.readouterr().err == said
