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
