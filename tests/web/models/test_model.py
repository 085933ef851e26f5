"""A model that answers."""

import pytest

import pseudomallows as pm
from pseudomallows.web.models.model import Model
from webhelp import make_app, make_model


def test_a_model_of_rankings_or_with_two_equal_names_is_refused(tmp_path):
    ranks = pm.fit(pm.Preferences.from_rankings([[1, 2, 3]] * 5), "pseudo", alpha=2, rng=1)
    ranks.save(tmp_path / "r.pm")
    with pytest.raises(ValueError, match="of rankings"):
        make_app(tmp_path / "r.pm", str(tmp_path / "s.sqlite"))
    prefs = pm.Preferences.from_clicks({1: ["a"], "1": ["b"], "x": ["a"]})
    pm.fit(prefs, "mcmc", 2, rng=1).save(tmp_path / "n.pm")
    with pytest.raises(ValueError, match="two users are both '1'"):
        make_app(tmp_path / "n.pm", str(tmp_path / "s.sqlite"))


def test_a_personal_model_is_compiled_before_the_first_request(tmp_path, monkeypatch):
    """Its corrections too, which the usual number of items may not need."""
    fit = make_model(tmp_path / "m.pm", method="personal", n_users=300)
    model, best, asked = Model(fit, 1), Model.best, []
    assert fit.correction is not None
    monkeypatch.setattr(
        Model, "best", lambda self, codes, k: (asked.append(k), best(self, codes, k))
    )
    model.prepare()
    assert any(fit.correction_for(min(k, fit.n_items)) is not None for k in asked)
    assert len(set(asked)) > 1
