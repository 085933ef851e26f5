"""The classic data of the field, in the files that people have of them."""

from pathlib import Path

import numpy as np
import pytest

import pseudomallows as pm

SHARED = Path(__file__).parents[3] / "shared" / "data"
RANKS = [[3, 1, 2], [1, 2, 3], [1, 3, 2]]
FORMS = {  # made-up rows in the forms of the files
    "potatoes.csv": "P1,P2,P3\n3,1,2\n1,2,3\n1,3,2\n",
    "potatoes of write.csv.csv": '"","P1","P2","P3"\n"A1",3,1,2\n"A2",1,2,3\n"A3",1,3,2\n',
    "sushi.csv": '"","shrimp","sea eel","tuna"\n"1",3,1,2\n"2",1,2,3\n"3",1,3,2\n',
}
PREFLIB = """# FILE NAME: 00014-00000001.soc
# TITLE: Sushi Data
# DATA TYPE: soc
# NUMBER ALTERNATIVES: 3
# NUMBER VOTERS: 3
# NUMBER UNIQUE ORDERS: 3
# ALTERNATIVE NAME 1: ebi (shrimp)
# ALTERNATIVE NAME 2: anago (sea eel)
# ALTERNATIVE NAME 3: maguro (tuna)
1: 2,3,1
1: 1,2,3
1: 1,3,2
"""


@pytest.mark.parametrize("name", FORMS)
def test_tables_of_ranks(tmp_path, name):
    path = tmp_path / name
    path.write_text(FORMS[name])
    assert pm.read(path).rankings.tolist() == RANKS


def test_sushi_of_preflib(tmp_path):
    path = tmp_path / "00014-00000001.soc"
    path.write_text(PREFLIB)
    prefs = pm.read(path)
    assert prefs.rankings.tolist() == RANKS
    assert prefs.items.tolist() == ["ebi (shrimp)", "anago (sea eel)", "maguro (tuna)"]


def test_beaches(tmp_path):
    """The item at the top is the better one, in whatever column it stands."""
    rows = '"1",1,2,15\n"2",1,5,3\n"3",2,15,3\n'
    path = tmp_path / "beaches.csv"
    path.write_text('"","assessor","bottom_item","top_item"\n' + rows)
    prefs = pm.read(path)
    assert prefs.users.tolist() == ["1", "2"]
    wins = zip(prefs.items[prefs.better], prefs.items[prefs.worse], strict=True)
    assert sorted(wins) == [("15", "2"), ("3", "15"), ("3", "5")]


needs_data = pytest.mark.skipif(not SHARED.is_dir(), reason="the files are not part of the package")


@needs_data
@pytest.mark.parametrize("name", ["visual", "weighing"])
def test_the_potatoes_themselves(name):
    """12 people rank 20 potatoes; they come near the truth."""
    prefs = pm.read(SHARED / "potatoes" / f"potato_{name}.csv")
    assert (prefs.n_users, prefs.n_items, prefs.is_full) == (12, 20, True)
    truth = pm.read(SHARED / "potatoes" / "potato_true_ranking.csv").rankings[0]
    assert np.corrcoef(prefs.mean_ranks(), truth)[0, 1] > 0.9


@needs_data
def test_the_beaches_themselves():
    prefs = pm.read(SHARED / "beaches" / "beach_preferences.csv")
    assert (prefs.n_users, prefs.n_items, int(prefs.counts.sum())) == (60, 15, 1442)
    assert not prefs.is_contradictory
