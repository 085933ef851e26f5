"""JSON lines: an object a line."""

import gzip
import json

import pytest

import pseudomallows as pm
from helpers import cells_of


@pytest.fixture
def lines(put):
    def write(*entries, name="log.jsonl"):
        text = "\n".join(e if isinstance(e, str) else json.dumps(e) for e in entries) + "\n"
        return put(gzip.compress(text.encode()) if name.endswith("gz") else text, name)

    return write


CLICKS = [{"user": 7, "item": "tea", "time": 5}, {"item": "Äle", "user": 8}]


@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson", "x.jsonl.gz"])
def test_keys_name_the_columns_in_any_order(lines, name):
    found = pm.read(lines(*CLICKS, "", name=name))
    assert cells_of(found) == {"7": ["tea"], "8": ["Äle"]}
    assert found.times[0] == 5


def test_a_key_that_is_missing_is_an_empty_cell(lines):
    path = lines({"user": "a", "tea": 1, "ale": 2}, {"user": "b", "ale": 1, "gin": None})
    assert pm.read(path, "rankings").rankings.tolist() == [[1, 2, 3], [0, 1, 0]]
    with pytest.warns(pm.data.DroppedRowsWarning, match="1 of 3 rows .* the first at line 4"):
        pm.read(lines(*CLICKS, "", {"user": 9}))


def test_other_kinds(lines):
    assert pm.read(lines({"better": "a", "worse": "b"})).is_vote
    shown = [{"user": 1, "item": item, "clicked": item == "a"} for item in "ab"]
    assert pm.read(lines(*shown)).wins().sum() == 1
    places = [{"user": "u", "rank1": "a", "rank2": "b"}, {"user": "v", "rank1": "b"}]
    assert pm.read(lines(*places)).rankings.tolist() == [[1, 2], [2, 1]]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"user": "c"', "line 3: this is no JSON"),
        ("[1, 2]", r"line 3: wanted an object like \{\"user\""),
        ({"user": "c", "item": ["x"]}, r"line 3, column 'item': a cell holds \['x'\]"),
        ({"user": "c", "item": {"id": 1}}, "line 3, column 'item': a cell holds"),
        ("[" * 100_000, "line 3: this is no JSON"),
    ],
)
def test_errors_name_the_line(lines, line, words):
    with pytest.raises(ValueError, match=rf"log\.jsonl, {words}"):
        pm.read(lines(*CLICKS, line))
    with pytest.raises(ValueError, match="header is for tables of text"):
        pm.read(lines(*CLICKS), header=False)
