"""The command line, run as people run it."""

import csv
import gzip
import io
import json
import os
import pty
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.cli import commands
from pseudomallows.cli import parser as cli

COMMANDS = ["demo", "simulate", "fit", "consensus", "recommend", "evaluate", "report", "info"]
COMMANDS += ["serve"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Clicks and a model of them, made once by the command."""
    folder = tmp_path_factory.mktemp("made")
    simulated = ["--users", 60, "--items", 8, "--out", folder / "c.csv", "--seed", 1]
    assert run("simulate", "clicks", *simulated) == 0
    fitted = ["--out", folder / "m.pm", "--method", "mcmc", "--alpha", 5, "--seed", 1]
    assert run("fit", folder / "c.csv", *fitted) == 0
    return folder


@pytest.fixture
def clicks(made, here):
    shutil.copy(made / "c.csv", here)
    return "c.csv"


@pytest.fixture
def model(made, clicks):
    shutil.copy(made / "m.pm", ".")
    return "m.pm"


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


def subparsers():
    parser = cli.make_parser()
    return next(a for a in parser._actions if hasattr(a, "choices") and a.choices).choices


def examples():
    return {
        name: re.search(r"example:\n\s+pseudomallows (.*)", parser.epilog)[1]
        for name, parser in subparsers().items()
    }


def test_the_commands_of_the_contract_are_there():
    assert set(COMMANDS) <= set(subparsers())


def test_every_help_ends_in_an_example_that_runs(here, capsys):
    """In the order of the commands; the demo and the service have tests of their own."""
    found = examples()
    for name in [name for name in found if name not in ("demo", "serve")]:
        assert cli.main(shlex.split(found[name])) == 0, found[name]
    assert sorted(os.listdir(here)) == [
        "clicks.csv",
        "model.pm",
        "parts",
        "recommendations.csv",
        "report.html",
    ]
    assert found["demo"].split()[0] == "demo"


def test_simulated_files_are_read_again(here):
    for what, kind in (("clicks", pm.Clicks), ("rankings", pm.Rankings)):
        out = ["--out", f"{what}.csv", "--truth", "truth.csv"]
        assert run("simulate", what, "--users", 9, "--items", 5, "--seed", 1, *out) == 0
        assert isinstance(pm.read(f"{what}.csv"), kind)
        truth = pm.read("truth.csv")
        assert truth.is_full.all()
    top = ["--top", 2, "--out", "top.csv"]
    assert run("simulate", "rankings", "--users", 9, "--items", 5, "--seed", 1, *top) == 0
    assert (pm.read("top.csv").rankings > 0).sum(axis=1).tolist() == [2] * 9


def test_the_command_says_what_the_function_says(clicks, model, capsys):
    """Same data, same seed: the same consensus and the same recommendations."""
    posterior = pm.fit(pm.read(clicks), "mcmc", 5, rng=1)
    capsys.readouterr()
    assert run("consensus", model, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["item"] for row in rows] == [row["item"] for row in posterior.summary()]
    assert [row["highest"] for row in rows] == [row["highest"] for row in posterior.summary()]
    expected = pm.recommend(posterior, 2).to_rows()
    assert run("recommend", model, "--k", 2) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(r["user"], r["item"]) for r in rows] == [(r["user"], r["item"]) for r in expected]
    assert float(rows[0]["probability"]) == pytest.approx(expected[0]["probability"], abs=1e-6)
    assert run("evaluate", clicks, "--hide", 1, "--k", 2, "--seed", 1, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    with pytest.warns(pm.ConvergenceWarning):
        result = pm.evaluate(pm.read(clicks), 1, 2, rng=1)
    assert found["accuracy"] == result.accuracy


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".json", ".parquet"])
def test_tables_by_the_ending_of_their_name(model, ending):
    assert run("recommend", model, "--k", 1, "--out", f"r{ending}") == 0
    if ending == ".json":
        with open("r.json") as stream:
            rows = json.load(stream)
    elif ending == ".parquet":
        rows = pytest.importorskip("pyarrow.parquet").read_table("r.parquet").to_pylist()
    else:
        assert pm.read(f"r{ending}", "clicks").n_users == 60
        return
    assert len(rows) == 60
    assert set(rows[0]) == {"user", "place", "item", "probability"}


def test_new_users_by_a_file_and_old_ones_by_name(model, capsys):
    with open("new.csv", "w") as stream:
        stream.write("user,item\nnina,item 3\nnina,item 5\nolga,item 1\n")
    assert run("recommend", model, "--k", 2, "--clicks", "new.csv", "--quiet", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["user"] for row in rows] == ["nina", "nina", "olga", "olga"]
    with open("one.csv", "w") as stream:
        stream.write("user,item\nnina,item 3\n")
    assert run("recommend", model, "--k", 2, "--clicks", "one.csv") == 0
    capsys.readouterr()
    posterior = pm.load(model)
    expected = pm.recommend(posterior, 2, clicks={"nina": ["item 3", "item 5"]}).to_rows()
    assert [row["item"] for row in rows[:2]] == [row["item"] for row in expected]
    assert run("recommend", model, "--k", 1, "--users", "user 07", "user 02", "--json") == 0
    assert [r["user"] for r in json.loads(capsys.readouterr().out)] == ["user 07", "user 02"]


def test_users_who_are_numbers_are_found(here, capsys):
    prefs = pm.Preferences.from_clicks({7: [1, 2], 8: [2], 9: [3]})
    pm.fit(prefs, "mcmc", 2, n_draws=50, n_chains=2, rng=1).save("m.pm")
    assert run("recommend", "m.pm", "--k", 1, "--users", "8", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["user"] == 8


def test_a_personal_model_shows_what_is_clicked_most(clicks, capsys):
    assert run("fit", clicks, "--method", "personal", "--seed", 1, "--out", "own.pm") == 0
    capsys.readouterr()
    assert run("consensus", "own.pm", "--json") == 0
    told = capsys.readouterr()
    assert "no consensus; these are the items by the share of users who clicked" in told.err
    rows, expected = json.loads(told.out), pm.load("own.pm").most_clicked()
    assert [(row["rank"], row["item"]) for row in rows] == [
        (row["rank"], row["item"]) for row in expected
    ]
    assert run("consensus", "own.pm", "--cluster", 0) == 1
    assert "own.pm has no clusters" in capsys.readouterr().err
    assert run("info", "own.pm", "--json") == 0
    about = json.loads(capsys.readouterr().out)
    assert (about["fitted to"], "clusters" in about, "draws" in about) == ("clicks", False, False)


def test_info(clicks, model, capsys):
    assert run("info", clicks) == 0
    assert re.search(r"holds +clicks\nusers +60\n", capsys.readouterr().out)
    assert run("info", model, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["holds"], found["method"], found["seed"]) == ("model", "mcmc", 1)
    assert found["worst R-hat"] < 1.05


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
        (["consensus", "m.pm", "--cluster", "4"], "cluster must be"),
        (["recommend", "m.pm", "--users", "zoe"], "no user is named 'zoe'"),
        (["recommend", "m.pm", "--out", "r.doc"], "must end in one of .csv"),
        (["recommend", "m.pm", "--out", "r.csv", "--json"], "give one of them"),
        (["recommend", "m.pm", "--clicks", "strange.csv"], "unknown item: 'gold'"),
        (["evaluate", "c.csv", "--hide", "99"], "no user has more than 99 clicks"),
        (["evaluate", "c.csv", "--hide", "1", "--k", "1000000000"], "k must be at most"),
        (["evaluate", "r.csv"], "evaluate needs clicks"),
        (["report", "m.pm", "--evaluate", "--hide", "1", "--k", "99"], "k must be at most"),
        (["info", "cut.pm"], "cut.pm: this is a damaged model file"),
        (["info", "pairs.csv"], "pairs.csv, line 1: these are comparisons of pairs"),
        (["info", "bad.csv"], "bad.csv, line 2"),
    ],
)
def test_bad_input_is_one_clear_line_and_code_1(model, capsys, arguments, words):
    for name, text in (
        ("bad.csv", "user,item\nx\n"),
        ("strange.csv", "user,item\nx,gold\nx,item 1\n"),
        ("r.csv", "a,b,c\n1,2,3\n3,2,1\n"),
        ("pairs.csv", "assessor,bottom_item,top_item\n1,2,3\n1,3,4\n"),
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
        "pseudomallows: warning: gaps.csv: 1 of 3 rows have no user or no item and are left out, "
        "the first at line 3"
    ]


def test_a_column_of_ratings_is_told_once(here, capsys):
    with open("ratings.csv", "w") as stream:
        stream.write("userId,movieId,rating\na,x,5\na,y,1\nb,y,4\n")
    for arguments in (["info"], ["split", "--out", "parts"]):
        assert run(*arguments, "ratings.csv", "--quiet") == 0
        assert capsys.readouterr().err.splitlines() == [
            "pseudomallows: warning: ratings.csv: column 'rating' is ignored, every row counts as "
            "a click, also the 1 of 3 whose rating is below 3, the middle of 1 to 5: drop the rows "
            "that are not clicks first"
        ]


def test_what_was_read_is_said_unless_the_kind_is_given(clicks, capsys):
    for more, words in (
        ([], f"{clicks}: read as clicks: Clicks(60 users"),
        (["--kind", "clicks"], ""),
    ):
        assert run("split", clicks, "--out", f"parts{len(more)}", *more) == 0
        assert words in capsys.readouterr().err.splitlines()[0]


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("pseudo", {"alpha": 4.0, "n_draws": 30, "n_clusters": 2, "sigma": 0.5}),
        ("pseudo", {"n_draws": 20, "update": "expected"}),
        ("mcmc", {"n_draws": 40, "thin": 1, "warmup": 30, "n_chains": 2, "keep_latent": ["u3"]}),
        ("balanced", {"alpha": 3.0, "n_draws": 30}),
        ("personal", {"ridge": 0.7, "nonnegative": False, "alpha": 3.0}),
        ("personal", {"calibrate": False}),
    ],
)
def test_a_report_judges_the_options_of_the_model(method, options):
    data = pm.simulate_clicks(150, 8, [6, 6], 4, min_clicks=3, rng=1).preferences
    prefs = data.rename(users=[f"u{row}" for row in range(150)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        posterior = pm.fit(prefs, method, rng=1, **options)
        again = commands.evaluate_again(posterior, 1, 2, rng=1).posterior
    assert again.n_clusters == posterior.n_clusters
    if method != "personal":
        assert again.consensus.shape == posterior.consensus.shape
    own, found = (p.settings["options"] for p in (posterior, again))
    allowed = {"keep_latent"}  # which does not change an answer
    if method == "personal" and options.get("calibrate", True):
        allowed |= {"held_out"}  # what was hidden
    assert {name for name in own if own[name] != found.get(name)} <= allowed
    if "alpha" in options:
        drawn = again.alphas if method == "personal" else again.alpha
        assert (drawn == options["alpha"]).all()


def test_a_report_does_not_judge_what_it_cannot_make_again():
    prefs = pm.simulate_clicks(60, 6, 5, 3, rng=1).preferences
    scores = np.random.default_rng(1).normal(size=(60, 6))
    posterior = pm.fit(prefs, "personal", scores=scores, rng=1)
    with pytest.raises(ValueError, match=r"fitted with scores=\.\.\., which cannot be made again"):
        commands.evaluate_again(posterior, 1, 2)


# what is no file


def commands_that_write(model):
    return {
        "recommend": ["recommend", model, "--k", 1, "--out"],
        "consensus": ["consensus", model, "--out"],
        "fit": [
            "fit",
            "c.csv",
            "--method",
            "mcmc",
            "--alpha",
            5,
            "--draws",
            50,
            "--seed",
            1,
            "--out",
        ],
        "report": ["report", model, "--out"],
        "simulate": ["simulate", "clicks", "--users", 9, "--items", 5, "--seed", 1, "--out"],
    }


WRITERS = ["recommend", "consensus", "fit", "report", "simulate"]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("ending", [".csv", ""])
def test_a_pipe_is_written_to_and_stays_a_pipe(model, name, ending):
    pipe = f"pipe{ending}"
    os.mkfifo(pipe)
    before, found = sorted(os.listdir(".")), []
    reader = threading.Thread(target=lambda: found.append(Path(pipe).read_bytes()), daemon=True)
    reader.start()
    assert run(*commands_that_write(model)[name], pipe, "--quiet") == 0
    reader.join(timeout=20)
    assert len(found[0]) > 100
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    assert sorted(os.listdir(".")) == before


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(("minor", "code"), [(3, 0), (7, 1)], ids=["null", "full"])
def test_a_device_is_written_to_and_stays_a_device(model, capsys, name, minor, code):
    try:
        os.mknod("device", 0o666 | stat.S_IFCHR, os.makedev(1, minor))
    except (OSError, AttributeError):
        pytest.skip("devices cannot be made here")
    os.symlink("device", "link")
    for out in ("device", "link"):
        assert run(*commands_that_write(model)[name], out, "--quiet") == code
        assert stat.S_ISCHR(os.lstat("device").st_mode)
        assert ("No space left" in capsys.readouterr().err) == bool(code)
    assert os.path.islink("link")


def test_a_link_stays_and_the_file_it_leads_to_is_replaced(model, capsys):
    os.mkdir("far")
    with open("far/r.csv", "w") as stream:
        stream.write("old")
    os.symlink("far/r.csv", "r.csv")
    os.symlink("far/new.csv", "new.csv")  # to where nothing is yet
    os.symlink("no/new.csv", "wrong.csv")
    for name in ("r.csv", "new.csv"):
        assert run("recommend", model, "--k", 1, "--out", name) == 0
        assert os.path.islink(name)
        assert pm.read(f"far/{name}", "clicks").n_users == 60
    assert sorted(os.listdir("far")) == ["new.csv", "r.csv"]
    assert run("recommend", model, "--k", 1, "--out", "wrong.csv") == 1
    assert "there is no folder" in capsys.readouterr().err


def test_standard_output_by_its_name(model):
    """Through a pipe, and into a file that has something already, which stays."""
    asked = shlex.join(command("consensus", model, "--out", "/dev/stdout"))
    done = subprocess.run(asked, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("cluster,item,rank,lowest,highest,mean\n")
    script = f"echo first > all.csv; {asked} >> all.csv; echo last >> all.csv"
    subprocess.run(script, shell=True, check=True)
    with open("all.csv") as stream:
        assert stream.read() == f"first\n{done.stdout}last\n"


HOSTILE = ["=cmd|' /C calc'!A0", "+1+1", "-tea", "@sum(a1)", "\tx", "tea", "-3.5", "'quoted"]


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz"])
@pytest.mark.parametrize("name", ["recommend", "recommend --users", "consensus"])
def test_safe_csv_has_no_formula(here, name, ending):
    log = {who: [name for name in HOSTILE if name != who][:5] for who in HOSTILE}
    pm.fit(pm.Preferences.from_clicks(log), "mcmc", 2, n_draws=50, n_chains=2, rng=1).save("m.pm")
    arguments = [name.split()[0], "m.pm", "--out", f"x{ending}"]
    arguments += ["--users=@sum(a1)"] if "--users" in name else []
    tables = []
    for more in ([], ["--safe-csv"]):
        assert run(*arguments, *more) == 0
        opened = gzip.open if ending.endswith(".gz") else open
        with opened(f"x{ending}", "rt", newline="") as stream:
            tables.append(list(csv.reader(stream, delimiter="\t" if "tsv" in ending else ",")))
    plain, safe = tables
    cells = [cell for row in safe for cell in row]
    bad = [cell for cell in cells if cell[:1] in tuple("=+-@\t\r") and cell != "-3.5"]
    assert bad == []
    unmarked = [[c[1:] if c[:1] == "'" and c != "'quoted" else c for c in row] for row in safe]
    assert unmarked == plain
    assert any(cell[:1] in ("=", "@") for row in plain for cell in row)


# as a process


def command(*arguments):
    return [sys.executable, "-m", "pseudomallows", *map(str, arguments)]


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
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert said.splitlines()[-1] == "pseudomallows: interrupted"
    assert os.listdir(here) == ["c.csv"]


def test_a_terminal_sees_a_bar(here):
    pytest.importorskip("rich")
    assert run("simulate", "clicks", "--users", 200, "--out", "c.csv", "--seed", 1) == 0
    mine, its = pty.openpty()
    arguments = command("fit", "c.csv", "--out", "m.pm", "--seed", 1)
    with subprocess.Popen(arguments, stderr=its, env=os.environ | {"TERM": "xterm"}) as process:
        os.close(its)
        said = b""
        while True:
            try:
                part = os.read(mine, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            said += part
    os.close(mine)
    assert process.returncode == 0
    assert b"fitting" in said
    assert b"%" in said


def test_completion_knows_the_commands(capsys):
    pytest.importorskip("shtab")
    for shell in ("bash", "zsh"):
        assert run("completion", shell) == 0
        script = capsys.readouterr().out
        assert all(name in script for name in COMMANDS)


def test_the_demo(here, capsys, monkeypatch):
    """On few customers and two clusters, so that it is quick."""
    prefs = pm.datasets.online_retail(n_items=30, min_purchases=13)
    monkeypatch.setattr(commands, "DEMO_CLUSTERS", 2)
    monkeypatch.setattr(commands.datasets, "online_retail", lambda **_: prefs)
    assert run("demo", "--out", "a demo", "--seed", "1") == 0
    printed = capsys.readouterr().out
    shares = [float(share) for share in re.findall(r"(\d+\.\d)%", printed)]
    assert len(shares) == 3
    assert "report.html" in printed
    assert sorted(os.listdir("a demo")) == ["model.pm", "recommendations.csv", "report.html"]
    assert pm.load("a demo/model.pm").n_clusters == 2
    assert pm.read("a demo/recommendations.csv", "clicks").n_users == 211  # one has all


def test_a_demo_that_cannot_write_says_so(here, capsys):
    (here / "file").write_text("")
    assert run("demo", "--out", "file") == 1
    assert "it is a file" in capsys.readouterr().err
