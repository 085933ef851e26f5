"""Times stay with their clicks, whatever is done with these."""

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.data.more_clicks import check_held_out, join_clicks
from pseudomallows.data.splits import hide_clicks


@pytest.fixture
def prefs():
    """Who clicked what when: the time tells user and item."""
    rng = np.random.default_rng(1)
    rows, columns = np.nonzero(rng.random((30, 8)) < 0.4)
    users, items = [f"u{row:02}" for row in rows], [f"i{column}" for column in columns]
    return pm.Preferences.from_clicks({"user": users, "item": items, "time": 100 * rows + columns})


def is_true(clicks):
    """Does every click have the time that its names tell, if it has one?"""
    users = np.array([int(name[1:]) for name in clicks.users])[clicks.owners]
    items = np.array([int(name[1:]) for name in clicks.items])[clicks.codes]
    known = ~np.isnan(clicks.times)
    return known.any() and (clicks.times == 100 * users + items)[known].all()


def test_rows_and_items_take_their_times_along(prefs):
    assert is_true(prefs)
    assert is_true(prefs.take([7, 3, 3, 20]))
    assert is_true(prefs.take(np.arange(prefs.n_users) % 2 == 0))
    assert is_true(prefs.rename())
    places = np.array([3, 9, 0, 1, 2, 8, 7, 6])
    names = np.array([f"x{place}" for place in range(10)], dtype=object)
    names[places] = prefs.items
    assert is_true(prefs.on_items(names, places))
    assert is_true(prefs.choose(prefs.codes != 2))
    assert is_true(prefs.kept())
    assert is_true(prefs.one_row_each()[0])


def test_hidden_clicks_leave_the_times_of_the_others(prefs):
    shown, hidden = hide_clicks(prefs, 1, np.random.default_rng(1))
    assert is_true(shown)
    assert len(shown.times) == len(prefs.times) - hidden.sum()


def test_clicks_of_several_data_sets(prefs):
    one, other = prefs.take(range(20)), prefs.take(range(20, 30))
    assert is_true(pm.Preferences.concat([other, one]))
    bare = pm.Preferences.from_clicks({"u99": ["i1"]}, items=prefs.items.tolist())
    both = pm.Preferences.concat([prefs, bare])
    assert is_true(both)
    assert np.isnan(both.times[-1])
    ranked = pm.Preferences.from_orderings([["i1", "i2"]], users=["z"], items=prefs.items)
    mixed = pm.Preferences.concat([prefs, ranked])
    arrays = mixed.to_arrays()
    assert is_true(type(mixed).from_arrays(arrays, mixed.users, mixed.items).parts[0])


def test_joined_clicks_have_the_earlier_time(prefs):
    later = {"user": ["u00", "u00"], "item": prefs.items[:2], "time": [-5.0, 1e9]}
    joined = join_clicks(prefs, later)
    row = dict(zip(joined.items[joined.clicks_of(0)], joined.times, strict=False))
    assert row["i0"] == -5.0
    assert row["i1"] == (1 if "i1" in prefs.items[prefs.clicks_of(0)] else 1e9)
    assert is_true(join_clicks(prefs, {"new": []} | {"u01": ["i0"]}).take(range(30)))
    given = prefs.take([4, 2])
    assert is_true(check_held_out(given.rename(items=given.items.tolist()), prefs.take(range(9))))


def test_arrays_keep_times_and_older_ones_have_none(prefs):
    arrays = prefs.to_arrays()
    assert is_true(pm.Clicks.from_arrays(arrays, prefs.users, prefs.items))
    older = {name: array for name, array in arrays.items() if name != "click_times"}
    assert pm.Clicks.from_arrays(older, prefs.users, prefs.items).times is None
    wrong = arrays | {"click_times": prefs.times[:-1]}
    with pytest.raises(ValueError, match="its times do not fit its clicks"):
        pm.Clicks.from_arrays(wrong, prefs.users, prefs.items)


def test_times_count_in_the_digest_and_clicks_without_have_the_old_one(prefs):
    bare = pm.Preferences.from_clicks([[1, 0, 1], [0, 0, 1]])
    assert bare.digest() == "d6e67e42bac21051"
    timed = pm.Preferences.from_clicks([[1, 0, 1], [0, 0, 1]], times=np.ones((2, 3)))
    other = pm.Preferences.from_clicks([[1, 0, 1], [0, 0, 1]], times=2 * np.ones((2, 3)))
    assert len({bare.digest(), timed.digest(), other.digest()}) == 3


@pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.FitWarning")
def test_a_saved_fit_keeps_the_times(prefs, tmp_path):
    posterior = pm.fit(prefs, method="matched", alpha=2.0, n_draws=5, rng=1)
    posterior.save(tmp_path / "model.pm")
    assert is_true(pm.load(tmp_path / "model.pm").clicks)
    more = {"user": ["u31"], "item": ["i3"], "time": [3103]}
    assert is_true(posterior.update(more, rng=1).clicks)
