"""Method "personal" with Kendall's distance, from clicks to answers."""

import functools
import re
from dataclasses import replace

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.cli import main
from pseudomallows.evaluation.evaluate import evaluate_again
from pseudomallows.evaluation.figures import calibrate
from pseudomallows.sampling.reproduce import call_of
from pseudomallows.sampling.update import update

N_ITEMS = 6


@functools.cache
def clicks():
    """Two kinds of users, 160 in all."""
    rng, rows = np.random.default_rng(1), {}
    for user in range(160):
        first = [0, 1, 2, 3, 4, 5] if user % 2 else [5, 3, 4, 1, 2, 0]
        law = pm.Mallows(np.argsort(first) + 1, 12, distance="kendall")
        rows[f"u{user}"] = np.flatnonzero(law.draw(1, rng)[0] <= 2 + user % 3).tolist()
    return pm.Preferences.from_clicks(rows, items=range(N_ITEMS))


@functools.cache
def fitted(**options):
    how = {"calibrate": False} | options
    return pm.fit(clicks(), "personal", distance="kendall", ridge=0.3, rng=1, **how)


def exact_probabilities(fit, clicked, window, distance):
    """By all rankings: the user's order, the user's shares of the alphas, what comes next."""
    seen = pm.Preferences.from_clicks({0: clicked}, items=range(N_ITEMS))
    center = tuple(fit.rankings_of(fit.scores_of(seen, slice(0, 1)))[0].tolist())
    likes = [naive.click_likelihood(clicked, center, alpha, distance) for alpha in fit.alphas]
    shares = naive.memberships(likes, fit.alpha_shares)
    probabilities = np.zeros(N_ITEMS)
    for share, alpha in zip(shares, fit.alphas.tolist(), strict=True):
        probabilities += share * np.array(
            naive.next_probabilities(clicked, center, alpha, window, distance)
        )
    return probabilities


@pytest.mark.parametrize("clicked", [[2], [0, 3], [1, 2, 4]])
def test_probabilities_of_a_new_user_equal_enumeration(clicked):
    fit = fitted(calibrate=False)
    found = pm.recommend(fit, 3, clicks={"new": clicked}, window=2)
    exact = exact_probabilities(fit, clicked, 2, "kendall")
    assert found.probabilities[0] == pytest.approx(exact[found.items[0]], abs=1e-12)
    assert found.probabilities[0] == pytest.approx(np.sort(exact)[::-1][:3], abs=1e-12)
    wrong = exact_probabilities(fit, clicked, 2, "footrule")
    assert found.probabilities[0] != pytest.approx(wrong[found.items[0]], abs=1e-3)


def test_a_saved_fit_answers_as_before_and_says_how_it_was_made(tmp_path):
    fitted().save(tmp_path / "x.pm")
    again = pm.load(tmp_path / "x.pm")
    assert again.settings["distance"] == "kendall"
    one, other = pm.recommend(again, 2), pm.recommend(fitted(), 2)
    assert (one.items == other.items).all()
    np.testing.assert_array_equal(one.probabilities, other.probabilities)
    assert "distance='kendall', ridge=0.3" in call_of(again)  # as it was given


def test_a_file_with_a_distance_that_has_no_such_law_is_refused(tmp_path):
    settings = fitted().settings | {"distance": "ulam"}
    replace(fitted(), settings=settings).save(tmp_path / "x.pm")
    with pytest.raises(ValueError, match="distance='ulam', and this version knows"):
        pm.load(tmp_path / "x.pm")


def test_updates_evaluations_and_intervals_keep_the_distance():
    newer = update(fitted(), {"ann": [0, 4]}, rng=2)
    assert newer.settings["distance"] == "kendall"
    assert newer.n_users == 161
    assert evaluate_again(fitted(), 1, 2, rng=1).posterior.settings["distance"] == "kendall"
    runs = pm.recommendations.user_intervals(fitted(), "u0", rng=1)
    mine = clicks().codes[: clicks().starts[1]]
    assert (runs[mine, 1] <= len(mine)).all()


def test_probabilities_come_true_where_the_model_holds():
    """Users with scores of their own, drawn by Kendall's distance."""
    rng, n_users, n_items = np.random.default_rng(3), 3000, 30
    scores, alphas = rng.normal(size=(n_users, n_items)), rng.choice([8.0, 30.0], n_users)
    centers = np.argsort(np.argsort(-scores, axis=1), axis=1) + 1
    rankings = np.stack(
        [
            pm.Mallows(center, alpha, distance="kendall").draw(1, rng)[0]
            for center, alpha in zip(centers, alphas, strict=True)
        ]
    )
    prefs = pm.Preferences.from_clicks(rankings <= rng.integers(4, 12, n_users)[:, None])
    is_next = (rankings > prefs.n_clicks[:, None]) & (rankings <= prefs.n_clicks[:, None] + 3)

    def error_of(fit):
        found = pm.recommend(fit, 3)
        hits = np.take_along_axis(is_next, found.items, axis=1).astype(float)
        return calibrate(found.probabilities.ravel(), hits.ravel()).error

    how = {"calibrate": False, "rng": 1}
    fit = pm.personal.fit_scores(prefs, scores, **how)
    assert error_of(fit) <= 0.02
    mean_log = np.log(fit.alphas) @ fit.alpha_shares
    assert mean_log == pytest.approx(np.log(alphas).mean(), abs=0.1)
    doubled = pm.personal.fit_scores(prefs, scores, 40.0, **how)
    assert error_of(doubled) > 0.04  # a law that is too sure would be found out


def test_the_command_fits_recommends_and_reports(tmp_path, capsys):
    rows = clicks()
    owners = np.repeat(rows.users, rows.n_clicks)
    lines = [f"{user},i{item}" for user, item in zip(owners, rows.codes.tolist(), strict=True)]
    (tmp_path / "log.csv").write_text("user,item\n" + "\n".join(lines) + "\n")
    model, page = str(tmp_path / "x.pm"), tmp_path / "report.html"
    how = ["--method", "personal", "--distance", "kendall", "--seed", "1", "--out", model]
    assert main(["fit", str(tmp_path / "log.csv"), *how]) == 0
    assert pm.load(model).settings["distance"] == "kendall"
    capsys.readouterr()
    assert main(["recommend", model, "--k", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 300
    assert main(["info", model]) == 0
    assert re.search(r"distance +kendall", capsys.readouterr().out)
    assert main(["report", model, "--out", str(page)]) == 0
    assert "Kendall's distance" in page.read_text()


@pytest.mark.parametrize("distance", ["footrule", "spearman", "ulam"])
def test_other_distances_are_refused(distance):
    with pytest.raises(ValueError, match=f"by Kendall's distance; got distance='{distance}'"):
        pm.fit(clicks(), "personal", distance=distance, rng=1)
