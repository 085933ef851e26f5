"""What the commands do with their files."""

import csv
import gzip
import io
import json
import os
import shlex
import stat
import subprocess
import threading
from pathlib import Path

import pytest

import pseudomallows as pm
from clihelp import command, run
from pseudomallows.sampling.reproduce import call_of


def test_simulated_files_are_read_again(here):
    for what, kind in (("clicks", pm.Clicks), ("rankings", pm.Rankings)):
        out = ["--out", f"{what}.csv", "--truth", "truth.csv"]
        assert run("simulate", what, "--users", 9, "--items", 5, "--seed", 1, *out) == 0
        assert isinstance(pm.read(f"{what}.csv"), kind)
        truth = pm.read("truth.csv")
        assert truth.is_full
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
    how = ("--hide", 1, "--k", 2, "--seed", 1, "--method", "pseudo", "--json")
    assert run("evaluate", clicks, *how) == 0
    found = json.loads(capsys.readouterr().out)
    with pytest.warns(pm.ConvergenceWarning):
        result = pm.evaluate(pm.read(clicks), 1, 2, method="pseudo", rng=1)
    assert found["accuracy"] == result.accuracy


def test_an_update_adds_clicks_to_a_model(clicks, model, here, capsys):
    known = pm.load(model)
    lines = [f"zoe,{known.items[0]}", f"{known.users[3]},{known.items[1]}"]
    Path("later.csv").write_text("\n".join(["user,item", *lines]) + "\n")
    capsys.readouterr()
    assert run("update", model, "later.csv", "--out", "newer.pm", "--seed", 2) == 0
    assert "its chains went on" in capsys.readouterr().err
    found = pm.load("newer.pm")
    more = {"zoe": [known.items[0]], known.users[3]: [known.items[1]]}
    expected = known.update(more, rng=2)
    assert (found.consensus == expected.consensus).all()
    assert found.users.tolist() == [*known.users.tolist(), "zoe"]
    assert run("update", "newer.pm", "later.csv", "--out", "third.pm", "--draws", 30) == 0
    assert pm.load("third.pm").consensus.shape[1] == 30
    Path("strange.csv").write_text("user,item\nzoe,gold\n")
    assert run("update", model, "strange.csv", "--out", "fourth.pm") == 1
    assert "does not know: 'gold'; " in capsys.readouterr().err
    assert not Path("fourth.pm").exists()
    assert run("update", model, "later.csv", "--out", "later.csv") == 1


def test_names_of_a_model_that_are_numbers_are_found_by_their_text(here):
    prefs = pm.simulate_clicks(60, 8, 5, 3, rng=1).preferences
    pm.fit(prefs, "matched", n_draws=50, rng=1).save("m.pm")
    Path("later.csv").write_text("user,item\n7,3\n99,3\n")
    assert run("update", "m.pm", "later.csv", "--out", "n.pm", "--seed", 2) == 0
    found = pm.load("n.pm")
    assert 3 in found.data.clicks_of(7)
    assert found.users.tolist() == [*range(60), 99]


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
    assert run("consensus", "own.pm", "--cluster", 1) == 1
    assert "own.pm has no clusters" in capsys.readouterr().err
    assert run("info", "own.pm", "--json") == 0
    about = json.loads(capsys.readouterr().out)
    assert (about["fitted to"], "clusters" in about, "draws" in about) == ("clicks", False, False)


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


def test_a_terminal_gets_an_aligned_table(model, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run("consensus", model) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["cluster", "item", "rank", "lowest", "highest", "mean"]
    assert len(rows) == 8
    assert {row[head.index("rank") :].split()[0] for row in rows} == {*"12345678"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "c.csv", "--out", "x.pm", "--checkpoint", "x"], "--checkpoint needs --seed"),
        (["recommend", "m.pm", "--clicks", "."], ". is a folder: --out must be a folder too"),
        (["report", "r.pm", "--evaluate", "--out", "r.html"], "only clicks can be hidden"),
        (["serve", "r.pm"], "the service recommends from clicks, and this model is of rankings"),
    ],
)
def test_what_a_command_cannot_do_is_said_before_the_work(model, capsys, arguments, words):
    pm.fit(pm.Preferences.from_rankings([[1, 2, 3]]), "pseudo", alpha=1, rng=1).save("r.pm")
    assert run(*arguments) == 1
    assert words in capsys.readouterr().err


def test_pairs_to_compare_are_those_of_the_function(model, capsys):
    found = pm.next_pairs(pm.load(model), n=3, rng=1).to_rows()
    assert run("pairs", model, "--n", 3, "--seed", 1, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["item"], row["other"]) for row in rows] == [(r["item"], r["other"]) for r in found]
    assert rows[0]["information"] == pytest.approx(found[0]["information"], abs=1e-4)
    assert run("pairs", model, "--user", "nobody") == 1
    assert "no user is named 'nobody'" in capsys.readouterr().err


def test_pairs_count_clusters_from_1_as_consensus_does(here, capsys):
    prefs = pm.simulate_rankings(80, 5, [6.0, 6.0], rng=1).preferences
    pm.fit(prefs, n_clusters=2, rng=1).save("two.pm")
    posterior = pm.load("two.pm")
    for cluster in (0, 1):
        found = pm.next_pairs(posterior, n=3, cluster=cluster, rng=1).to_rows()
        arguments = ["--n", 3, "--cluster", cluster + 1, "--seed", 1, "--json"]
        assert run("pairs", "two.pm", *arguments) == 0
        rows = json.loads(capsys.readouterr().out)
        assert [(r["item"], r["other"]) for r in rows] == [(r["item"], r["other"]) for r in found]
    assert run("pairs", "two.pm", "--cluster", 3) == 1
    assert "--cluster must be in 1..2, got 3" in capsys.readouterr().err


def test_check_says_what_the_function_says(model, capsys):
    """In words and as JSON; clicks of strangers are left out."""
    users, items = (pm.load(model).clicks.users[:40], pm.load(model).clicks.items)
    later = {user: [items[row % 8], items[-1]] for row, user in enumerate(users.tolist())}
    lines = [f"{user},{item}\n" for user, chosen in later.items() for item in chosen]
    Path("later.csv").write_text("user,item\n" + "".join(lines) + f"zoe,{items[0]}\n")
    expected = pm.check(pm.load(model), later, k=3)
    assert run("check", model, "later.csv", "--k", 3) == 0
    assert capsys.readouterr().out == f"{expected}\n"
    assert run("check", model, "later.csv", "--k", 3, "--json") == 0
    assert json.loads(capsys.readouterr().out) == expected.figures()
    Path("later.csv").write_text(f"user,item\nzoe,{items[0]}\n")
    assert run("check", model, "later.csv") == 1
    assert "no click of a user of the fit" in capsys.readouterr().err


def test_votes_become_a_leaderboard(here, capsys):
    votes = "better,worse\n" + "a,b\n" * 30 + "b,c\n" * 30 + "b,a\n" * 5 + "c,a\n" * 9
    Path("votes.csv").write_text(votes)
    how = ["--method", "mcmc", "--distance", "kendall", "--seed", 1]
    assert run("fit", "votes.csv", "--out", "votes.pm", *how) == 0
    capsys.readouterr()
    assert run("consensus", "votes.pm", "--json") == 0
    assert [row["item"] for row in json.loads(capsys.readouterr().out)] == ["a", "b", "c"]
    assert run("pairs", "votes.pm", "--n", 2, "--out", "pairs.csv") == 0
    assert len(Path("pairs.csv").read_text().splitlines()) == 3


@pytest.fixture
def ratings(here):
    """A log without a header, of users who go from the first item to the last."""
    lines = [
        f"u{row}::i{row % 3 + place}::{place % 5 + 1}::{place}"
        for row in range(30)
        for place in range(8)
    ]
    Path("log.dat").write_text("\n".join(lines) + "\n")
    return "log.dat"


def test_evaluate_splits_by_time_and_says_who_is_evaluated(ratings, capsys):
    how = ["--no-header", "--columns", "user,item,stars,time", "--min-rating", 2, "--alpha", 5]
    how += ["--draws", 5, "--seed", 1, "--k", 2]
    assert run("evaluate", ratings, *how, "--split", "time", "--at", 6) == 0
    found = capsys.readouterr()
    assert (
        "hidden: all clicks from 6 on; 2 recommendations each\n30 of 30 users evaluated"
        in found.out
    )
    assert "EASE" in found.out
    assert "60 of 240 ratings below 2 left out" in found.err
    assert run("evaluate", ratings, *how, "--split", "last", "--hide", 1, "--json") == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["hidden"] == "each user's last click"
    assert figures["verdict"]["answer"] in ("yes", "with care", "no")
    assert (figures["n_users"], figures["all_users"], figures["not_evaluated"]) == (30, 30, {})
    assert set(figures["scores"]) == {"fit", "popularity", "EASE"}
    assert set(figures["scores"]["EASE"]["recall"]) == {"value", "error"}
    Path("later.csv").write_text("user,item\nu0,i8\nu1,i9\nnobody,i1\n")
    assert run("evaluate", ratings, *how, "--test", "later.csv") == 0
    assert (
        "2 of 31 users evaluated; not evaluated: 1 in test, but not in prefs"
        in capsys.readouterr().out
    )


@pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.FitWarning")
def test_a_fit_remembers_how_its_file_was_read(ratings, capsys):
    how = ["--no-header", "--columns", "user=0,item=1,time=3", "--min-clicks", 5, "--sep", "::"]
    assert (
        run("fit", ratings, *how, "--out", "model.pm", "--alpha", 5, "--draws", 5, "--seed", 1) == 0
    )
    said = "(no header, columns user, item, column 2, timestamp; 0 users and 0 items with fewer"
    assert said in capsys.readouterr().err
    posterior = pm.load("model.pm")
    call = call_of(posterior)
    again = eval(call, {"pm": pm, "path": ratings})
    assert call.startswith(
        "pm.fit(pm.read(path, columns={'user': 0, 'item': 1, 'time': 3}, sep='::'"
    )
    assert (again.consensus == posterior.consensus).all()
    assert (again.clicks.times == posterior.clicks.times).all()


def test_a_report_of_answers_finds_the_groups_and_who_is_in_them(here):
    """From a table to a page, without a model in between."""
    likes, dislikes = range(1, 7), range(6, 0, -1)
    rows = [[f"Ann {n}", *(likes if n % 3 else dislikes)] for n in range(60)]
    with open("answers.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["name", *"abcdef"], *rows])
    assert run("report", "answers.csv", "--out", "page.html", "--seed", 1) == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "fall into 2 groups" in page
    first, second = page.split("Group 2, ")
    assert "Ann 1<" in first
    assert "Ann 3<" in second
    assert run("report", "answers.csv", "--out", "one.html", "--clusters", 1, "--seed", 1) == 0
    assert "People do not share one order" in Path("one.html").read_text(encoding="utf-8")


def test_an_evaluation_stays_with_the_model(model, clicks, capsys):
    options = ["--hide", 1, "--k", 2, "--seed", 1, "--keep-in", model, "--json"]
    assert run("evaluate", clicks, "--method", "mcmc", "--alpha", 5, *options) == 0
    shown = json.loads(capsys.readouterr().out)
    assert pm.load(model).settings["evaluation"] == shown
    assert run("report", model, "--out", "page.html") == 0
    assert shown["verdict"]["words"] in Path("page.html").read_text()
    assert "Not checked yet" not in Path("page.html").read_text()
