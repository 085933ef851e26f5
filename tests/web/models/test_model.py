"""A model that answers."""

import pytest

import pseudomallows as pm
from pseudomallows.web.app import make_app


def test_a_model_of_rankings_or_with_two_equal_names_is_refused(tmp_path):
    ranks = pm.fit(pm.Preferences.from_rankings([[1, 2, 3]] * 5), alpha=2, rng=1)
    ranks.save(tmp_path / "r.pm")
    with pytest.raises(ValueError, match="of rankings"):
        make_app(tmp_path / "r.pm", str(tmp_path / "s.sqlite"))
    prefs = pm.Preferences.from_clicks({1: ["a"], "1": ["b"], "x": ["a"]})
    pm.fit(prefs, "mcmc", 2, rng=1).save(tmp_path / "n.pm")
    with pytest.raises(ValueError, match="two users are both '1'"):
        make_app(tmp_path / "n.pm", str(tmp_path / "s.sqlite"))
