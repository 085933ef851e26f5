"""Rankings and clicks: what a row says, and what each kind answers for itself."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pseudomallows as pm
from pseudomallows.data import KINDS


def test_a_row_of_ties_is_not_full_and_one_tie_of_all_says_nothing():
    prefs = pm.Preferences.from_rankings(
        [[1, 2, 2], [1, 1, 1], [1, 2, 3], [1, 0, 0]], weights=[1, 1, 1, 0]
    )
    assert prefs.is_row_full.tolist() == [False, False, True, False]
    assert prefs.is_row_tied.tolist() == [True, True, False, False]
    assert prefs.is_informative.tolist() == [True, False, True, False]
    assert prefs.is_full is False  # a bool of Python, so that it can be written as JSON
    assert prefs.take([1, 2]).is_full is True
    assert repr(prefs) == "Rankings(4 users, 3 items; 1 full, 1 partial, 2 with ties)"
    with pytest.raises(ValueError, match="no informative rows"):
        pm.fit(prefs.take([1]), "pseudo")


RANKED = pm.Preferences.from_rankings([[1, 2, 2, 4], [1, 0, 0, 0]], weights=[1, 3])
CLICKED = pm.Preferences.from_clicks([[1, 0, 1, 0], [0, 0, 0, 1]], weights=[1, 3])


def compared(pairs, weights=(1, 3)):
    return pm.Preferences.from_pairs(pairs, weights=weights, users=[0, 1], items=range(4))


COMPARED = [(0, 1, 2), (0, 2, 1), (0, 1, 2), (1, 3, 0)]
SAMPLES = {
    "rankings": RANKED,
    "clicks": CLICKED,
    "pairs": compared(COMPARED),
    "mixed": pm.Preferences.concat([RANKED.take([0]), CLICKED.take([1]).rename(users=[1])]),
}


def other_samples(kind):
    """Data that differ from the sample, in what was said or in the weights."""
    if kind == "pairs":
        yield compared([(1, 1, 2), *COMPARED[1:]])
        yield compared([*COMPARED[:2], COMPARED[3]])
        yield compared(COMPARED, [1, 1])
    elif kind == "mixed":
        for part in (RANKED.take([0]), CLICKED.take([0])):
            yield pm.Preferences.concat([part, CLICKED.take([0]).rename(users=["x"])])
        yield pm.Preferences.concat([CLICKED.take([1]), RANKED.take([0])])
    else:
        make = getattr(pm.Preferences, f"from_{kind}")
        rows = {
            "rankings": [[[1, 3, 2, 4], [1, 0, 0, 0]], [[1, 2, 2, 4], [0, 1, 0, 0]]],
            "clicks": [[[1, 0, 0, 0], [0, 0, 0, 1]], [[0, 0, 0, 1], [1, 0, 1, 0]]],
        }[kind]
        yield from (make(each, weights=[1, 3]) for each in rows)
        yield make(rows[0])


def test_every_kind_has_a_sample():
    assert set(SAMPLES) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_answers_for_itself(kind):
    prefs = SAMPLES[kind]
    facts = prefs.facts()
    assert prefs.kind == kind
    assert type(prefs) is KINDS[kind]
    assert list(facts)[:3] == ["users", "items", "people"]
    assert (facts["users"], facts["items"], facts["people"]) == (2, 4, 4)
    assert all(type(value) in (int, float) for value in facts.values())
    words = ("rankings with ties", "clicks", "comparisons", "rankings with ties and clicks")
    assert prefs.shape_words in words
    assert not prefs.is_full
    assert prefs.is_row_full.shape == prefs.is_informative.shape == (2,)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_a_kind_bring_it_back(kind):
    prefs = SAMPLES[kind]
    arrays = prefs.to_arrays()
    assert set(prefs.ARRAYS) <= set(arrays)
    for name, array in arrays.items():
        assert array.dtype == prefs.array_type(name)
    assert prefs.array_type("consensus") is None
    again = KINDS[kind].from_arrays(arrays, prefs.users, prefs.items)
    assert again.digest() == prefs.digest()
    assert repr(again) == repr(prefs)


@pytest.mark.parametrize("kind", KINDS)
def test_other_data_have_another_digest(kind):
    prefs, others = SAMPLES[kind], [*other_samples(kind)]
    others += [prefs.rename(items=list("abcd")), prefs.take([0])]
    digests = {each.digest() for each in (prefs, *others)}
    assert len(digests) == 1 + len(others)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_that_are_wrong_are_refused(kind):
    prefs = SAMPLES[kind]
    arrays = prefs.to_arrays()
    for name, array in arrays.items():
        wrong = [array[:-1], array.astype(float), array - 10, array + 2**30, array[None]]
        for each in wrong:
            with pytest.raises(ValueError):
                KINDS[kind].from_arrays(arrays | {name: each}, prefs.users, prefs.items)
        rest = {other: arrays[other] for other in arrays if other != name}
        own = name.split("_", 1)[1] if name.startswith("part") else name
        with pytest.raises(ValueError, match=f"no array '{own}'"):
            KINDS[kind].from_arrays(rest, prefs.users, prefs.items)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_for_each_person_says_the_same(kind):
    prefs = SAMPLES[kind]
    each, owners = prefs.one_row_each()
    assert owners.tolist() == [0, 1, 1, 1]
    assert each.weights.tolist() == [1, 1, 1, 1]
    for row, owner in enumerate(owners):
        mine, theirs = each.take([row]), replace(prefs.take([owner]), weights=np.ones(1, np.int64))
        assert mine.digest() == theirs.digest()


def test_saved_ties_must_have_their_first_rank():
    prefs = SAMPLES["rankings"]
    arrays = prefs.to_arrays() | {"ranking_rankings": np.array([[1, 2, 2, 3], [1, 0, 0, 0]])}
    with pytest.raises(ValueError, match="the first of their ranks"):
        KINDS["rankings"].from_arrays(arrays, prefs.users, prefs.items)


def test_a_saved_user_has_clicked_an_item_once():
    prefs = SAMPLES["clicks"]
    arrays = prefs.to_arrays() | {"click_codes": np.array([2, 2, 3])}
    with pytest.raises(ValueError, match="clicked an item twice"):
        KINDS["clicks"].from_arrays(arrays, prefs.users, prefs.items)


def test_mean_ranks_share_out_what_is_left():
    prefs = pm.Preferences.from_rankings([[1, 0, 0, 0], [1, 2, 3, 4]], weights=[3, 1])
    assert prefs.mean_ranks().tolist() == [1, (3 * 3 + 2) / 4, 3, (3 * 3 + 4) / 4]


@given(st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=8), st.data())
def test_rows_are_taken_whole(rows, data):
    prefs = pm.Preferences.from_clicks(dict(enumerate(rows)), items=range(6))
    assert prefs.starts.tolist() == [0, *itertools.accumulate(map(len, rows))]
    assert prefs.codes.tolist() == [item for row in rows for item in sorted(row)]
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6))
    taken = prefs.take(chosen)
    assert [taken.clicks_of(i).tolist() for i in range(len(chosen))] == [
        sorted(rows[row]) for row in chosen
    ]
