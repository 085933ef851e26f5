"""The parser: commands and their help, exit codes, warnings, the command as a process."""

import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

import pseudomallows as pm
from clihelp import command, run
from pseudomallows import cli
from pseudomallows.cli import main

COMMANDS = ["demo", "simulate", "fit", "consensus", "recommend", "evaluate", "report", "info"]
COMMANDS += ["serve", "update", "check"]


def test_the_commands_of_the_contract_are_there(capsys):
    with pytest.raises(SystemExit):
        run("--help")
    shown = capsys.readouterr().out
    assert all(re.search(rf"^    {name}\b", shown, re.MULTILINE) for name in COMMANDS)


def test_every_help_ends_in_an_example_that_runs(here, capsys):
    """In the order of the commands; the demo, prepare and the service have tests of their own."""
    found = {each.name: f"{each.name} {each.example}" for each in cli.COMMANDS}
    known = "".join(f"user 001,item {place:02}\n" for place in range(1, 51))
    (here / "later.csv").write_text(f"user,item\nzoe,item 07\n{known}")
    for name in [name for name in found if name not in ("demo", "prepare", "serve")]:
        if name == "distances":  # fifteen fits: fewer users are enough to see that it runs
            rows = (here / "clicks.csv").read_text().splitlines(keepends=True)
            (here / "clicks.csv").write_text("".join(rows[:200]))
        assert main(shlex.split(found[name])) == 0, found[name]
    assert sorted(os.listdir(here)) == [
        "clicks.csv",
        "later.csv",
        "model.pm",
        "newer.pm",
        "parts",
        "recommendations.csv",
        "report.html",
    ]
    assert found["demo"].split()[0] == "demo"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "none.csv", "--out", "x.pm"], "none.csv"),
        (["fit", "c.csv", "--out", "no/x.pm"], "there is no folder no"),
        (["fit", "c.csv", "--out", "c.csv"], "is the file that is read"),
        (["fit", "c.csv", "--out", "-"], "cannot go to standard output"),
        (["simulate", "clicks", "--truth", "no/t.csv", "--out", "s.csv"], "there is no folder no"),
        (["fit", "c.csv", "--out", "x.pm", "--alpha", "-1"], "alpha must be"),
        (["fit", "bad.csv", "--out", "x.pm"], "bad.csv, line 2: there are 1 cells"),
        (["consensus", "c.csv"], "c.csv is not a saved posterior"),
        (["consensus", "m.pm", "--cluster", "4"], "cluster must be in 1..1, got 4"),
        (["recommend", "m.pm", "--users", "zoe"], "no user is named 'zoe'"),
        (["recommend", "m.pm", "--out", "r.doc"], "must end in one of .csv"),
        (["recommend", "m.pm", "--out", "r.csv", "--json"], "give one of them"),
        (["recommend", "m.pm", "--clicks", "strange.csv"], "unknown item: 'gold'"),
        (["evaluate", "c.csv", "--hide", "99"], "no user has more than 99 clicks"),
        (["evaluate", "c.csv", "--hide", "1", "--k", "1000000000"], "k must be at most"),
        (["evaluate", "r.csv"], "evaluate needs clicks"),
        (["report", "m.pm", "--evaluate", "--hide", "1", "--k", "99"], "k must be at most"),
        (["info", "cut.pm"], "cut.pm: this is a damaged model file"),
        (["info", "pairs.csv"], "pairs.csv, line 3: '3' is compared with itself: drop the row"),
        (
            ["info", "sides.csv"],
            "if these are comparisons, name the columns user, better and",
        ),
        (["info", "bad.csv"], "bad.csv, line 2"),
    ],
)
def test_bad_input_is_one_clear_line_and_code_1(model, capsys, arguments, words):
    for name, text in (
        ("bad.csv", "user,item\nx\n"),
        ("strange.csv", "user,item\nx,gold\nx,item 1\n"),
        ("r.csv", "a,b,c\n1,2,3\n3,2,1\n"),
        ("pairs.csv", "assessor,bottom_item,top_item\n1,2,3\n1,3,3\n"),
        ("sides.csv", "user,left,right\n1,2,3\n1,3,4\n"),
    ):
        with open(name, "w") as stream:
            stream.write(text)
    Path("cut.pm").write_bytes(Path(model).read_bytes()[:2000])
    before = sorted(os.listdir("."))
    capsys.readouterr()
    assert run(*arguments, *(["--quiet"] if "bad" not in words else [])) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("pseudomallows: ")
    assert words in lines[-1]
    assert len(lines) == 1
    assert sorted(os.listdir(".")) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["dmeo"],
        [],
        ["fit", "x"],
        ["fit", "x", "--draws", "few"],
        ["fit", "x", "--out", "y", "--clusters", "0"],
    ],
)
def test_wrong_usage_is_code_2(arguments):
    with pytest.raises(SystemExit) as stop:
        run(*arguments)
    assert stop.value.code == 2


def test_a_warning_is_one_line(here, capsys):
    with open("gaps.csv", "w") as stream:
        stream.write("user,item\na,x\n,y\nb,y\n")
    assert run("info", "gaps.csv") == 0
    assert capsys.readouterr().err.splitlines() == [
        "pseudomallows: warning: gaps.csv: 1 of 3 rows have no user and are left out, "
        "the first at line 3"
    ]


def test_completion_knows_the_commands(capsys):
    pytest.importorskip("shtab")
    for shell in ("bash", "zsh"):
        assert run("completion", shell) == 0
        script = capsys.readouterr().out
        assert all(name in script for name in COMMANDS)


# as a process


def test_the_module_runs_as_a_command():
    done = subprocess.run(command("--version"), capture_output=True, text=True, check=True)
    assert done.stdout == f"pseudomallows {pm.__version__}\n"


def test_pipes(here):
    """Standard input and output; nothing but the result in the pipe, and no bar."""
    simulate = ["simulate", "rankings", "--users", 30, "--items", 5, "--seed", 1]
    script = (
        f"{shlex.join(command(*simulate))} | "
        f"{shlex.join(command('fit', '-', '--out', 'm.pm', '--method', 'mcmc', '--seed', 1))} && "
        f"{shlex.join(command('consensus', 'm.pm'))} | head -1"
    )
    done = subprocess.run(script, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout == "cluster,item,rank,lowest,highest,mean\n"
    said = done.stderr.splitlines()
    assert said[0].startswith("standard input: read as rankings: Rankings(30 users")
    assert len(said) == 2
    assert "\x1b" not in done.stderr


def test_a_reader_that_has_seen_enough_is_no_error(model):
    script = f"{shlex.join(command('recommend', model))} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""


def test_an_interrupt_is_code_130_and_leaves_nothing(here):
    simulated = ["--users", 3000, "--items", 60, "--out", "c.csv", "--seed", 1]
    assert run("simulate", "clicks", *simulated) == 0
    arguments = command("fit", "c.csv", "--out", "m.pm", "--method", "mcmc", "--draws", 100_000)
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        assert "read as clicks" in process.stderr.readline()
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=300)
        finally:
            process.kill()
    assert process.returncode == 130
    assert said.splitlines()[-1] == "pseudomallows: interrupted"
    assert os.listdir(here) == ["c.csv"]


def test_no_option_may_be_abbreviated(capsys):
    """In no command: --token would be --token-file, and a secret be taken for a path."""
    for each in cli.COMMANDS:
        with pytest.raises(SystemExit):
            main([each.name, *shlex.split(each.example), "--qui"])
        assert "unrecognized arguments: --qui" in capsys.readouterr().err


def test_a_token_is_not_taken_for_the_file_of_it(capsys):
    with pytest.raises(SystemExit) as end:
        main(["serve", "model.pm", "--token", "a token of some length"])
    assert end.value.code == 2
    assert "unrecognized arguments: --token" in capsys.readouterr().err


INTERRUPTS_IMPORT = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
"""


@pytest.mark.parametrize("module", ["numpy", "numba", "pseudomallows.kernels"])
def test_an_interrupt_during_the_imports_has_no_traceback(tmp_path, module):
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    told = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTS_IMPORT.format(module=module))
    done = subprocess.run(command("info"), capture_output=True, text=True, env=told)
    assert (done.stderr, done.returncode) == ("pseudomallows: interrupted\n", 130)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_a_table_is_written_leaves_no_file(here, number):
    rows = [f"u{user},i{item}" for user in range(40_000) for item in (user % 40, user % 39 + 1)]
    (here / "new.csv").write_text("\n".join(["user,item", *dict.fromkeys(rows)]))
    prefs = pm.Preferences.from_clicks({u: [f"i{u % 41}", f"i{(u + 1) % 41}"] for u in range(82)})
    pm.fit(prefs, "personal", calibrate=False, rng=1).save("m.pm")
    before = set(os.listdir(here))
    arguments = command("recommend", "m.pm", "--clicks", "new.csv", "--out", "r.csv")
    for _ in range(10):  # on a busy machine the signal may come once all is written: again
        with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
            while set(os.listdir(here)) == before:
                assert process.poll() is None
                time.sleep(0.001)
            process.send_signal(number)
            try:
                _, said = process.communicate(timeout=300)
            finally:
                process.kill()
        assert "Traceback" not in said
        if not (here / "r.csv").exists():
            break
        (here / "r.csv").unlink()
    assert process.returncode == 128 + number
    assert set(os.listdir(here)) == before
