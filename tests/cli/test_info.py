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
