"""What `info` says of a file."""

import json
import re

from clihelp import run


def test_info(clicks, model, capsys):
    assert run("info", clicks) == 0
    assert re.search(r"holds +clicks\nusers +60\n", capsys.readouterr().out)
    assert run("info", model, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["holds"], found["method"], found["seed"]) == ("model", "mcmc", 1)
    assert found["worst R-hat"] < 1.05


def test_info_of_rankings_shows_the_first_user(here, capsys):
    (here / "r.csv").write_text("user,tea,mate,rum,gin\nann,2,1,,3\nbob,1,2,3,4\n")
    assert run("info", "r.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["holds"], found["users"], found["full"]) == ("rankings", 2, 2)
    assert found["first user"] == "ann: mate, tea, gin"
