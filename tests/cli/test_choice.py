"""Files of items not to show; similar and explain."""

import csv
import io
import json
from pathlib import Path

import pytest

import pseudomallows as pm
from clihelp import run
from pseudomallows.cli.asking import read_choice


def rows_of(capsys):
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def test_a_file_has_one_item_a_line_or_rows_of_users(model, capsys):
    posterior = pm.load(model)
    users, items = posterior.users.tolist(), posterior.items.tolist()
    Path("plain.txt").write_text(f"item\n{items[0]}\n\n  {items[1]} \n")
    Path("bare.txt").write_text(f"{items[0]}\n{items[1]}\n")
    Path("rows.csv").write_text(f"user,item\n{users[0]},{items[2]}\n{users[0]},{items[3]}\n")
    assert read_choice(None, posterior) is None
    assert read_choice("plain.txt", posterior) == items[:2]
    assert read_choice("bare.txt", posterior) == items[:2]
    assert read_choice("rows.csv", posterior) == {users[0]: items[2:4]}
    capsys.readouterr()
    assert run("recommend", model, "--k", 2, "--exclude", "rows.csv", "--only", "plain.txt") == 0
    expected = pm.recommend(posterior, 2, exclude={users[0]: items[2:4]}, only=items[:2])
    found = [(row["user"], row["item"]) for row in rows_of(capsys)]
    assert found == [(row["user"], row["item"]) for row in expected.to_rows()]
    assert run("recommend", model, "--users", users[0], "--exclude", "bare.txt") == 0
    assert not {row["item"] for row in rows_of(capsys)} & set(items[:2])


def test_names_may_have_commas_and_be_numbers(here):
    prefs = pm.Preferences.from_clicks({1: ["tea, green", "rum"], 2: ["ale"], 3: ["rum", "ale"]})
    posterior = pm.fit(prefs, "personal", rng=1)
    Path("a.txt").write_text("tea, green\nrum\n")
    assert read_choice("a.txt", posterior) == ["tea, green", "rum"]
    Path("b.csv").write_text('1,"tea, green"\n2,rum\n')
    assert read_choice("b.csv", posterior) == {1: ["tea, green"], 2: ["rum"]}
    Path("c.csv").write_text("1,rum\n2,rum,3\n")
    with pytest.raises(ValueError, match=r"c.csv, line 2: wanted one item a line, or user,item"):
        read_choice("c.csv", posterior)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gold\n", "exclude has unknown items: 'gold'"),
        ("user,item\nzoe,item 1\n", "exclude names a user who is neither of the fit"),
    ],
)
def test_a_wrong_file_is_refused(model, capsys, text, words):
    Path("wrong.txt").write_text(text)
    assert run("recommend", model, "--exclude", "wrong.txt") == 1
    assert words in capsys.readouterr().err


def test_similar_and_explain_say_what_the_functions_say(made, here, capsys):
    personal = pm.fit(pm.read(made / "c.csv"), "personal", calibrate=False, rng=1)
    personal.save("p.pm")
    item, user = personal.items[0], personal.users[0]
    assert run("similar", "p.pm", "--item", item, "--k", 3) == 0
    expected = pm.similar_items(personal, item, 3)
    assert [row["item"] for row in rows_of(capsys)] == expected.names.tolist()
    assert run("similar", "p.pm", "--user", user, "--k", 3) == 0
    assert [row["user"] for row in rows_of(capsys)] == pm.similar_users(
        personal, user, 3
    ).names.tolist()
    assert run("similar", "p.pm", "--clicks", item) == 0
    assert len(rows_of(capsys)) == 10
    other = personal.items[1]
    assert run("explain", "p.pm", "--item", other, "--clicks", item, "--json") == 0
    said = capsys.readouterr()
    found = pm.explain(personal, item=other, clicks=[item])
    assert [row["reason"] for row in json.loads(said.out)] == found.names
    assert said.err.strip() == str(found)
    assert run("explain", "p.pm", "--item", "gold", "--user", user) == 1
    assert "no item is named 'gold'" in capsys.readouterr().err
