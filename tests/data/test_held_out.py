"""Later clicks, brought to the users and items of a fit."""

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.data.more_clicks import check_held_out
from pseudomallows.data.splits import hide_random


def simulated(n_users=400, seed=1):
    return pm.simulate_clicks(n_users, 30, [8, 8, 8, 8], 8, min_clicks=5, rng=seed)


def test_later_clicks_on_one_item_are_clicks_of_the_fit():
    data = simulated()
    items, users = data.preferences.items.tolist(), data.preferences.users.tolist()
    later = {user: [items[0]] for user in users}
    held_out = check_held_out(later, data.preferences)
    assert held_out.n_items == data.preferences.n_items
    assert held_out.n_clicks.tolist() == [1] * len(users)
    with pytest.raises(ValueError, match="held_out must have items of the fit, such as"):
        check_held_out({users[0]: ["unknown"]}, data.preferences)


def test_later_clicks_may_be_a_file(tmp_path):
    prefs = simulated(200).preferences
    shown, hidden = hide_random(prefs, 2, np.random.default_rng(1))
    rows = zip(hidden.users[hidden.owners], hidden.items[hidden.codes], strict=True)
    file = tmp_path / "later.csv"
    file.write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in rows))
    by_file, at_hand = (
        pm.fit(shown, "personal", ridge=0.3, held_out=later, rng=1) for later in (file, hidden)
    )
    assert by_file.correction.largest == at_hand.correction.largest == 4
    np.testing.assert_array_equal(by_file.correction.values, at_hand.correction.values)
