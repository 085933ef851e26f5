"""The certificate: stated against observed, by groups."""

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.evaluation.certificate import certificate_of, check_cells, worst_of


def cells(off, n_users=400, seed=1):
    """Recommendations that are right but for users with one click, where they are `off`."""
    rng = np.random.default_rng(seed)
    stated = rng.uniform(0.1, 0.5, (n_users, 5))
    n_clicks = np.where(np.arange(n_users) % 4 == 0, 1, 8)
    truth = np.where(n_clicks[:, None] == 1, stated - off, stated)
    observed = (rng.random(stated.shape) < truth).astype(float)
    items = rng.integers(0, 10, stated.shape)
    windows = np.full(n_users, 3)
    return (
        certificate_of(stated, observed, n_clicks, windows, items, np.arange(10)),
        stated,
        observed,
    )


def test_cells_have_the_means_of_their_users_and_all_recommendations():
    found, stated, observed = cells(0.0)
    one = next(cell for cell in found if cell.by == "users with" and cell.cell == "1 to 2 clicks")
    assert one.stated == pytest.approx(stated[::4].mean())
    assert one.observed == pytest.approx(observed[::4].mean())
    assert (one.n_users, one.n_recommendations) == (100, 500)
    assert one.low < one.observed < one.high
    for by in ("users with", "items", "next clicks"):
        assert sum(cell.n_recommendations for cell in found if cell.by == by) == 2000


def test_the_verdict_is_the_worst_cell_that_matters():
    right, *_ = cells(0.0)
    assert worst_of(right) is None
    assert check_cells(right).answer == "yes"
    wrong, *_ = cells(0.1)
    assert worst_of(wrong).cell == "1 to 2 clicks"
    found = check_cells(wrong)
    assert found.answer in ("with care", "no")
    assert "furthest off for users with 1 to 2 clicks" in found.words
    few, *_ = cells(0.1, n_users=80)  # 20 of them: too few to tell
    assert check_cells(few).answer == "yes"


@pytest.mark.parametrize("hit", [0.0, 1.0])
def test_no_hit_of_a_few_is_no_certainty_but_of_many_it_is(hit):
    for n_users, wrong in ((60, 0.0), (6000, 0.05)):
        shape = (n_users, 1)
        stated, ones = np.full(shape, abs(hit - 0.05)), np.ones(shape, np.int64)
        found = certificate_of(
            stated, np.full(shape, hit), ones[:, 0], ones[:, 0], ones, np.arange(10)
        )
        for cell in found:
            assert (cell.low <= stated[0, 0] <= cell.high) == (wrong == 0)
            assert 0 < cell.high - cell.low < 1
            assert cell.gap == pytest.approx(wrong)


def test_evaluate_and_check_have_one(tmp_path):
    prefs = pm.simulate_clicks(300, 15, alpha=10, mean_clicks=6, rng=1).preferences
    result = pm.evaluate(prefs, hide=2, k=3, method="personal", blend=False, rng=1)
    assert {cell.by for cell in result.certificate} == {
        "users with",
        "items",
        "next clicks",
    }
    assert "items clicked most" in result.summary()
    pm.report(result.posterior, tmp_path / "r.html", evaluation=result)
    assert "items clicked most" in (tmp_path / "r.html").read_text()


def test_a_fit_that_is_evaluated_by_another_question_says_so():
    shop = pm.datasets.online_retail(n_items=30, min_purchases=6)
    with pytest.warns(pm.diagnostics.QuestionWarning, match="give calibrate='random'"):
        found = pm.evaluate(
            shop, 2, 3, "personal", split="random", calibrate="last", blend=False, rng=1
        )
    assert found.posterior.question == "the next clicks of this visit"
    matched = pm.evaluate(shop, 2, 3, "personal", split="last", blend=False, rng=1)
    assert matched.posterior.settings["options"]["calibration"] == "last"


def test_groups_have_a_cell_each_and_wrong_ones_are_refused():
    prefs = pm.simulate_clicks(300, 15, alpha=10, mean_clicks=6, rng=1).preferences
    groups = {user: "new" if user % 3 else "old" for user in range(290)}
    how = {"hide": 2, "k": 3, "method": "personal", "blend": False, "rng": 1}
    result = pm.evaluate(prefs, groups=groups, **how)
    mine = [cell for cell in result.certificate if cell.by == "group"]
    assert [cell.cell for cell in mine] == ["new", "old"]
    evaluated = [user for user in result.recommendations.users.tolist() if user in groups]
    assert sum(cell.n_users for cell in mine) == len(evaluated)
    assert mine[0].n_users == sum(groups[user] == "new" for user in evaluated)
    with pytest.raises(ValueError, match="groups names none of the evaluated users"):
        pm.evaluate(prefs, groups={"nobody": "new"}, **how)
    with pytest.raises(TypeError, match="groups must be a dict"):
        pm.evaluate(prefs, groups=[1, 2], **how)
