"""What `info` says of a file."""

import json
import re

import pseudomallows as pm
from clihelp import run


def test_info(clicks, model, capsys):
    assert run("info", clicks) == 0
    assert re.search(r"holds +clicks\nusers +60\n", capsys.readouterr().out)
    assert run("info", model, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["holds"], found["method"], found["seed"]) == ("model", "mcmc", 1)
    assert found["trusted"].startswith(("yes: ", "with care: ", "no: "))
    assert re.fullmatch(r"yes: 1\.\d{3} \(want 1\.\d{3} or less\)", found["largest R-hat"])
    assert "want 200 or more" in found["effective number of draws"]


def test_info_of_a_tempered_fit_has_the_log_evidence(here, capsys):
    prefs = pm.Preferences.from_rankings([[1, 2, 3, 4], [2, 1, 3, 4], [1, 3, 2, 4]] * 4)
    pm.fit(prefs, "mcmc", temperatures=4, n_draws=100, rng=1).save("t.pm")
    assert run("info", "t.pm", "--json") == 0
    assert re.match(r"yes: -\d+\.\d\d", json.loads(capsys.readouterr().out)["log evidence"])


def test_info_of_rankings_shows_the_first_user(here, capsys):
    (here / "r.csv").write_text("user,tea,mate,rum,gin\nann,2,1,,3\nbob,1,2,3,4\n")
    assert run("info", "r.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["holds"], found["users"], found["full"]) == ("rankings", 2, 2)
    assert found["first user"] == "ann: mate, tea, gin"


def test_info_of_comparisons_shows_the_winner_and_a_contradiction(here, capsys):
    with open("p.csv", "w") as stream:
        stream.write("user,better,worse\nann,tea,ale\nann,ale,gin\nann,gin,tea\nbob,tea,gin\n")
    assert run("info", "p.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["holds"], found["comparisons"], found["contradictory users"]) == ("pairs", 4, 1)
    assert found["most preferred"] == "tea"
    assert found["a contradiction"] == "ann: ale over gin over tea over ale"


def test_info_learns_no_consensus_and_the_command_says_that_it_does(clicks, capsys):
    prefs = pm.read(clicks, "clicks")
    fit = pm.fit(prefs, "personal", calibrate=False, with_consensus=True, rng=1)
    fit.save("own.pm")
    assert run("info", "own.pm") == 0
    assert re.search("consensus +learnt when it is asked for\n", capsys.readouterr().out)
    assert run("consensus", "own.pm") == 0
    told = capsys.readouterr()
    assert "learning the consensus of all users" in told.err
    assert len(told.out.splitlines()) == 1 + prefs.n_items
    assert fit.population.n_items == prefs.n_items
    fit.save("own.pm")
    assert run("info", "own.pm") == 0
    assert re.search("consensus +Posterior", capsys.readouterr().out)
