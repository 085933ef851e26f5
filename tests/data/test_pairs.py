"""Comparisons: what a row says, wins and ties, votes, contradictions."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import pseudomallows as pm
from pseudomallows.data import Pairs
from pseudomallows.data.pairs import pairs_of_entries
from pseudomallows.rankings import MAX_WEIGHT

N_ITEMS, N_USERS = 5, 4
# (user, better, worse, is a tie, how often)
ENTRY = st.tuples(
    st.integers(0, N_USERS - 1),
    st.integers(0, N_ITEMS - 1),
    st.integers(0, N_ITEMS - 1),
    st.booleans(),
    st.integers(0, 3),
).filter(lambda entry: entry[1] != entry[2])
ENTRIES = st.lists(ENTRY, max_size=25)
WEIGHTS = st.lists(st.integers(0, 3), min_size=N_USERS, max_size=N_USERS)


def make(entries, weights=None):
    columns = np.array(entries, dtype=np.int64).reshape(-1, 5).T
    rows, better, worse, is_tie, counts = columns
    names = np.arange(N_USERS), np.array(list("abcde"), dtype=object)
    return pairs_of_entries(rows, better, worse, is_tie == 1, counts, weights, *names)


def said_of(prefs):
    """(user, better, worse, is a tie): how often it was said."""
    found = Counter()
    for row in range(prefs.n_users):
        for place in range(prefs.starts[row], prefs.starts[row + 1]):
            pair = row, int(prefs.better[place]), int(prefs.worse[place])
            found[*pair, False] += int(prefs.counts[place])
            found[*pair, True] += int(prefs.ties[place])
    return +found


def by_definition(entries):
    """The same of the entries; a tie has the lower item first."""
    found = Counter()
    for user, better, worse, is_tie, count in entries:
        pair = (min(better, worse), max(better, worse)) if is_tie else (better, worse)
        found[user, *pair, is_tie] += count
    return +found


def is_canonical(prefs):
    rows = np.repeat(np.arange(prefs.n_users), np.diff(prefs.starts)).tolist()
    keys = list(zip(rows, prefs.better.tolist(), prefs.worse.tolist(), strict=True))
    is_tied = prefs.ties > 0
    return (
        keys == sorted(set(keys))
        and (prefs.counts + prefs.ties > 0).all()
        and (prefs.better[is_tied] < prefs.worse[is_tied]).all()
    )


@given(ENTRIES)
def test_entries_in_any_order_are_sorted_and_added_up(entries):
    prefs = make(entries)
    assert is_canonical(prefs)
    assert said_of(prefs) == by_definition(entries)
    assert [array.dtype for array in prefs.to_arrays().values()] == list(prefs.ARRAYS.values())


@given(ENTRIES, WEIGHTS)
def test_wins_and_ties_are_those_of_all_people(entries, weights):
    prefs = make(entries, weights)
    wins, tied = np.zeros((2, N_ITEMS, N_ITEMS), dtype=np.int64)
    for user, better, worse, is_tie, count in entries:
        if is_tie:
            tied[better, worse] += count * weights[user]
            tied[worse, better] += count * weights[user]
        else:
            wins[better, worse] += count * weights[user]
    assert prefs.wins().tolist() == wins.tolist()
    assert prefs.tied().tolist() == tied.tolist()
    assert prefs.wins().dtype == prefs.tied().dtype == np.int64


@given(ENTRIES, WEIGHTS)
def test_votes_have_the_same_wins_and_ties_and_no_user(entries, weights):
    prefs = make(entries, weights)
    votes = prefs.as_votes()
    assert votes.is_vote
    assert is_canonical(votes)
    assert (votes.wins() == prefs.wins()).all()
    assert (votes.tied() == prefs.tied()).all()
    assert (votes.weights > 0).all()
    assert (votes.n_comparisons == 1).all()
    assert votes.users.tolist() == list(range(votes.n_users))
    pairs = [(*row, tie) for _, *row, tie in said_of(votes)]
    assert len(set(pairs)) == len(pairs)  # each answer has one row
    assert votes.as_votes().digest() == votes.digest()


def test_a_user_with_two_answers_has_no_vote():
    assert make([(0, 1, 2, False, 1)]).is_vote is True
    assert make([(0, 1, 2, True, 1), (1, 1, 2, False, 1)]).is_vote is True
    assert make([(0, 1, 2, False, 2)]).is_vote is False
    assert make([(0, 1, 2, True, 1), (0, 3, 4, False, 1)]).is_vote is False


@given(ENTRIES)
def test_a_user_is_consistent_if_a_ranking_agrees_with_all_wins(entries):
    prefs = make(entries)
    for user in range(N_USERS):
        wins = [(b, w) for u, b, w, is_tie, n in entries if u == user and not is_tie and n]
        likelihood = naive.pair_likelihood(wins, range(1, N_ITEMS + 1), 0.0)
        assert prefs.is_consistent[user] == (likelihood > 0)


@given(ENTRIES)
def test_a_contradiction_is_a_cycle_of_wins(entries):
    prefs = make(entries)
    found = prefs.contradictions()
    assert [user for user, _ in found] == np.flatnonzero(~prefs.is_consistent).tolist()
    for user, cycle in found:
        codes = ["abcde".index(name) for name in cycle]
        better, worse = prefs.pairs_of(user)
        wins = set(zip(better.tolist(), worse.tolist(), strict=True))
        assert len(set(codes)) == len(codes) >= 2
        assert set(zip(codes, codes[1:] + codes[:1], strict=True)) <= wins
    assert prefs.contradictions(most=1) == found[:1]


def test_contradictions_of_a_long_chain_take_no_recursion():
    n_items = 5_000
    chain = [(item, item + 1) for item in range(n_items - 1)]
    prefs = pm.Preferences.from_pairs({"ann": chain, "bob": [*chain, (n_items - 1, 0)]})
    assert prefs.is_consistent.tolist() == [True, False]
    assert prefs.contradictions() == [("bob", list(range(n_items)))]


def test_a_row_says_something_if_an_item_won():
    prefs = make([(0, 1, 2, False, 1), (1, 1, 2, True, 4), (2, 0, 1, False, 2)], [1, 1, 0, 1])
    assert prefs.is_informative.tolist() == [True, False, False, False]
    assert not prefs.is_row_full.any()
    assert prefs.n_comparisons.tolist() == [1, 4, 2, 0]
    assert prefs.kept() is prefs


def test_pairs_of_a_user_are_their_wins():
    prefs = make([(1, 3, 0, False, 2), (1, 0, 3, False, 1), (1, 0, 1, True, 1)])
    better, worse = prefs.pairs_of(1)
    assert (better.tolist(), worse.tolist()) == ([0, 3], [3, 0])
    assert [len(side) for side in prefs.pairs_of(0)] == [0, 0]


def test_facts_count_people():
    prefs = make([(0, 1, 2, False, 2), (0, 2, 1, False, 1), (1, 3, 4, True, 1)], [3, 1, 1, 0])
    facts = prefs.facts()
    assert facts["comparisons"] == 3 * 3 + 1
    assert facts["ties"] == 1
    assert facts["contradictory users"] == 1
    sizes = ("fewest", "median", "mean", "most")
    assert [facts[f"comparisons of a user, {each}"] for each in sizes] == [0, 0.5, 1.0, 3]
    assert repr(prefs) == "Pairs(4 users, 5 items; 10 comparisons)"


def test_nobody_is_no_problem():
    nobody = make([(0, 1, 2, False, 1)]).take([])
    assert nobody.facts()["comparisons of a user, most"] == 0
    assert nobody.wins().sum() == 0
    assert nobody.is_vote
    assert nobody.contradictions() == []


@given(ENTRIES, st.lists(st.integers(0, N_USERS - 1), max_size=6))
def test_rows_are_taken_whole(entries, chosen):
    prefs = make(entries)
    taken, said = prefs.take(chosen), said_of(prefs)
    assert taken.users.tolist() == chosen
    mine = Counter()
    for row, user in enumerate(chosen):
        mine.update({(row, *key): n for (owner, *key), n in said.items() if owner == user})
    assert said_of(taken) == mine


@given(ENTRIES, WEIGHTS)
def test_arrays_bring_comparisons_back(entries, weights):
    prefs = make(entries, weights)
    again = Pairs.from_arrays(prefs.to_arrays(), prefs.users, prefs.items)
    assert again.digest() == prefs.digest()
    assert said_of(again) == said_of(prefs)


GOOD = make([(0, 1, 2, False, 1), (0, 1, 3, True, 2), (1, 4, 0, False, 1)])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pair_better": [3, 1, 4]}, "not in order"),
        ({"pair_worse": [1, 3, 0]}, "do not fit together"),  # an item with itself
        ({"pair_better": [1, 1, 9]}, "do not fit together"),
        ({"pair_worse": [3, 3, 0]}, "there twice"),
        ({"pair_worse": [3, 2, 0]}, "not in order"),
        ({"pair_counts": [-1, 0, 1]}, "wrong counts or ties"),
        ({"pair_ties": [0, 0, 0]}, "wrong counts or ties"),  # the second says nothing
        ({"pair_ties": [0, 2, 1]}, "wrong counts or ties"),  # a tie of 4 and 0 is one of 0 and 4
        ({"pair_counts": [10**9, 0, 1]}, "at most 1e.09 comparisons"),
        ({"pair_counts": [2**62, 0, 2**62]}, "at most 1e.09 comparisons"),
        ({"pair_weights": [1, 1, 1, -1]}, "weights below 0"),
        ({"pair_starts": [0, 3, 2, 3, 3]}, "do not fit together"),
    ],
)
def test_saved_comparisons_that_cannot_be_are_refused(change, words):
    wrong = {name: np.array(values, dtype=Pairs.ARRAYS[name]) for name, values in change.items()}
    with pytest.raises(ValueError, match=words):
        Pairs.from_arrays(GOOD.to_arrays() | wrong, GOOD.users, GOOD.items)


def test_too_many_comparisons_are_refused():
    with pytest.raises(ValueError, match=r"at most 1e\+09 comparisons in all, .* got 3e\+09"):
        make([(0, 1, 2, False, int(MAX_WEIGHT)), (1, 1, 2, True, 2 * 10**9)])


@given(ENTRIES)
def test_the_same_over_more_items(entries):
    prefs = make(entries)
    places = np.array([4, 2, 6, 0, 1])
    more = prefs.on_items(np.array(list("tuvwxyz"), dtype=object), places)
    assert is_canonical(more)
    moved = [(u, int(places[b]), int(places[w]), t, n) for u, b, w, t, n in entries]
    assert said_of(more) == by_definition(moved)


def test_rows_of_two_stand_one_after_the_other():
    one, other = make([(0, 1, 2, False, 1)]), make([(3, 2, 0, True, 2)])
    both = Pairs.stack([one, other], np.arange(8))
    assert said_of(both) == {(0, 1, 2, False): 1, (7, 0, 2, True): 2}
    assert both.n_users == 8
