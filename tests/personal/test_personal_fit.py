"""A personal fit: what it has, what it has not, and its files."""

import pickle
from dataclasses import fields

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.personal.personal_fit import INSTEAD


def clicks():
    return pm.simulate_clicks(60, 6, [6, 6], 2, rng=1).preferences.rename(items=list("abcdef"))


@pytest.fixture(scope="module")
def fit():
    return pm.fit(clicks(), "personal", ridge=0.3, rng=1)


def test_a_personal_fit_is_no_posterior_of_draws(fit):
    assert isinstance(fit, pm.PersonalFit)
    assert not isinstance(fit, pm.Posterior)
    assert repr(fit).startswith("PersonalFit: 60 users, 6 items\n")
    assert (fit.n_items, fit.n_clusters, fit.n_users) == (6, 1, 60)
    assert fit.items.tolist() == list("abcdef")
    assert fit.clicks is fit.data
    settings = fit.settings
    assert (settings["method"], settings["kind"], settings["is_full"]) == ("personal", "clicks", 0)


def test_what_it_has_not_is_an_error_that_says_what_to_ask(fit):
    for name in INSTEAD:
        with pytest.raises(AttributeError, match=f"a personal fit has no {name}: each user"):
            getattr(fit, name)
    with pytest.raises(AttributeError, match=r"most_clicked.*pm\.recommend.*method='mcmc'"):
        fit.point_consensus("map")
    with pytest.raises(AttributeError, match="'PersonalFit' has no attribute 'nothing'"):
        fit.nothing  # noqa: B018
    with pytest.raises(ValueError, match="a personal fit has no clusters"):
        pm.recommendations.memberships(fit, {"new": ["a"]})


def test_every_answer_of_a_posterior_is_there_or_has_an_advice(fit):
    names = {name for name in dir(pm.Posterior) if not name.startswith("_")}
    names |= {field.name for field in fields(pm.Posterior)}
    missing = names - set(dir(fit)) - {field.name for field in fields(fit)}
    assert missing == set(INSTEAD)


def test_most_clicked_is_the_order_of_the_population(fit):
    rows, counts = fit.most_clicked(), fit.clicks.item_counts()
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["share"] for row in rows] == sorted((counts / 60).tolist(), reverse=True)
    ranking = fit.popularity_ranking()
    assert [fit.items[ranking.argmin()], fit.items[ranking.argmax()]] == [
        rows[0]["item"],
        rows[-1]["item"],
    ]


def test_a_copy_answers_the_same(fit):
    pm.recommend(fit, 2)  # tables, which are not copied
    again = pickle.loads(pickle.dumps(fit))
    assert (pm.recommend(again, 2).probabilities == pm.recommend(fit, 2).probabilities).all()


def test_its_file_has_no_made_up_arrays(fit, tmp_path):
    fit.save(tmp_path / "x.pm")
    with np.load(tmp_path / "x.pm", allow_pickle=False) as archive:
        assert not set(archive.files) & {"consensus", "weights", "log_posterior", "best", "latent"}
    again = pm.load(tmp_path / "x.pm")
    assert isinstance(again, pm.PersonalFit)
    assert again.settings == fit.settings
    for name in ("item_weights", "popularity", "ties", "alphas", "alpha_shares"):
        assert (getattr(again, name) == getattr(fit, name)).all()


def test_a_fit_says_what_its_data_were():
    rankings = pm.simulate_rankings(12, 4, 2, rng=1).preferences
    posterior = pm.fit(rankings, "pseudo", alpha=2, n_draws=5, rng=1)
    assert (posterior.settings["kind"], posterior.is_full) == ("rankings", True)
    assert (posterior.data, posterior.clicks) == (None, None)
    posterior = pm.fit(clicks(), "balanced", alpha=2, n_draws=200, rng=1)
    assert (posterior.settings["kind"], posterior.is_full) == ("clicks", False)
    assert posterior.clicks is posterior.data


def test_a_fit_says_what_an_evaluation_found(tmp_path):
    clicks = pm.simulate_clicks(80, 12, alpha=12.0, mean_clicks=5, rng=1).preferences
    fit, found = pm.fit(clicks, "personal", rng=1), pm.evaluate(clicks, 1, 2, rng=1)
    assert "Nobody has checked yet" in fit.verdict().words
    found.keep_in(fit)
    fit.save(tmp_path / "fit.pm")
    again = pm.load(tmp_path / "fit.pm")
    assert again.settings["evaluation"] == found.figures()
    assert again.verdict().words == found.verdict.words
    assert again.verdict().checks[0].value == found.calibration.error
    other = pm.simulate_clicks(80, 11, alpha=12.0, mean_clicks=5, rng=1).preferences
    with pytest.raises(ValueError, match="of the items of the fit"):
        found.keep_in(pm.fit(other, "personal", calibrate=False, rng=1))
