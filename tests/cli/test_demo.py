"""The demo, on less than all of its data."""

import os
import re
import subprocess
import sys

import pytest

import pseudomallows as pm
from clihelp import run


def test_the_demo(here, capsys, monkeypatch):
    """On few customers, so that it is quick."""
    prefs = pm.datasets.online_retail(n_items=30, min_purchases=13)
    monkeypatch.setattr(pm.datasets, "online_retail", lambda **_: prefs)
    assert run("demo", "--out", "a demo", "--seed", "1") == 0
    printed = capsys.readouterr().out
    rungs = re.findall(r"(\d+\.\d)% +(\d+\.\d)% +\d+$", printed, re.MULTILINE)
    assert len(rungs) == 3  # found and stated, by three ways
    assert all(30 < float(share) < 70 for rung in rungs for share in rung)
    assert re.search(r"best sellers +\d+\.\d%$", printed, re.MULTILINE)
    assert "The last 10 purchases of each customer are hidden." in printed
    assert re.search(r"Can it be trusted\? (yes|with care|no): \w", printed)
    assert re.search(r"stated +\d+%   observed +\d+%   customers with \d.+ purchases", printed)
    assert "  because of " in printed
    assert printed.count("A group of ") == 2
    assert re.search(r"95 % intervals: .+ \(1 to \d+\)", printed)
    assert len(printed.splitlines()) <= 40  # one screen
    assert "report.html" in printed
    assert sorted(os.listdir("a demo")) == ["model.pm", "recommendations.csv", "report.html"]
    model = pm.load("a demo/model.pm")
    assert isinstance(model, pm.PersonalFit)
    said = " ".join(printed.split())
    assert model.verdict().words in said  # the model keeps what was found
    assert pm.read("a demo/recommendations.csv", "clicks").n_users == 211  # one has all


@pytest.mark.slow
def test_clusters_of_the_purchases_converge():
    prefs = pm.datasets.online_retail(min_purchases=13)
    posterior = pm.fit(prefs, "matched", n_clusters=4, rng=1)
    found = [posterior.diagnostics(cluster) for cluster in range(posterior.n_clusters)]
    assert max(each.worst_rhat for each in found) <= 1.05
    # by the verdict, all but the worst 1 % are 200 or more; of all, three seeds have 92, 175, 254
    assert min(each.least_effective_size for each in found) >= 50
    assert posterior.verdict().answer == "yes"


def test_a_demo_that_cannot_write_says_so(here, capsys):
    (here / "file").write_text("")
    assert run("demo", "--out", "file") == 1
    assert "it is a file" in capsys.readouterr().err


def test_a_demo_without_jinja2_says_so_before_any_work(here):
    script = (
        "import sys; sys.modules['jinja2'] = None; from pseudomallows.cli import main; "
        "sys.exit(main(['demo']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "pip install 'pseudomallows[report]'" in done.stderr
    assert os.listdir(here) == []
