"""Later clicks, brought to the users and items of a fit."""

import pytest

import pseudomallows as pm
from pseudomallows.preferences.held_out import check_held_out


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
