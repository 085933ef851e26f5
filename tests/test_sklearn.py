"""The estimators: scikit-learn's own checks where they apply, and what the numbers mean."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy.sparse import csr_matrix
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import pseudomallows as pm
from pseudomallows.sklearn import ClickRecommender, MallowsClusters, MallowsRanker

BLOBS = "blobs of two coordinates: as rankings, they are two of two items"
ALL_CLICKED = "their numbers are all above 0: everybody clicked everything"
NO_LABELS = "their y is one label a row, ours the clicks that came later"
NOT_APPLICABLE = {
    "MallowsRanker": {},
    "MallowsClusters": {"check_clustering": BLOBS},
    "ClickRecommender": dict.fromkeys(
        [
            "check_dict_unchanged",
            "check_dont_overwrite_parameters",
            "check_dtype_object",
            "check_estimators_dtypes",
            "check_estimators_nan_inf",
            "check_estimator_sparse_array",
            "check_estimator_sparse_matrix",
            "check_estimators_pickle",
            "check_f_contiguous_array_estimator",
            "check_fit2d_1sample",
            "check_fit2d_predict1d",
            "check_fit_check_is_fitted",
            "check_fit_idempotent",
            "check_fit_score_takes_y",
            "check_methods_sample_order_invariance",
            "check_methods_subset_invariance",
            "check_n_features_in",
            "check_readonly_memmap_input",
        ],
        ALL_CLICKED,
    )
    | {"check_pipeline_consistency": NO_LABELS},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        MallowsRanker(values="scores", alpha=2.0, n_draws=10, random_state=1),
        MallowsClusters(2, values="scores", n_draws=10, random_state=1),
        ClickRecommender(k=1, random_state=1),
    ],
    expected_failed_checks=lambda estimator: NOT_APPLICABLE[type(estimator).__name__],
)
def test_it_is_an_estimator_of_scikit_learn(estimator, check):
    check(estimator)


def test_a_ranker_is_the_fit_and_ranks_rows_to_the_end():
    rankings = pm.simulate_rankings(40, 5, 4.0, rng=1).rankings
    ranker = MallowsRanker(random_state=1).fit(rankings)
    alone = pm.fit(pm.Preferences.from_rankings(rankings), rng=1)
    assert np.array_equal(ranker.consensus_[0], alone.point_consensus())
    order = np.argsort(ranker.consensus_[0])  # best first

    last = np.zeros((1, 5))
    last[0, order[0]] = 5  # who puts the best item last: the others move up
    assert np.array_equal(ranker.predict(last)[0][order], [5, 1, 2, 3, 4])
    tied = np.zeros((1, 5))
    tied[0, order[[1, 3]]] = 1
    assert np.array_equal(ranker.predict(tied)[0][order], [3, 1, 4, 2, 5])
    assert np.array_equal(ranker.predict(np.full((1, 5), np.nan))[0], ranker.consensus_[0])


def test_scores_are_ranked_with_ties():
    scores = np.array([[5.0, 3.0, 3.0, 1.0]] * 6 + [[5.0, 3.0, np.nan, 1.0]] * 3)
    ranks = np.array([[1, 2, 2, 4]] * 6 + [[1, 2, 0, 3]] * 3)
    one = MallowsRanker(values="scores", alpha=3.0, random_state=1).fit(scores)
    other = MallowsRanker(alpha=3.0, random_state=1).fit(ranks)
    assert np.array_equal(one.posterior_.consensus, other.posterior_.consensus)
    assert one.score(scores) == other.score(ranks)


@pytest.mark.filterwarnings("ignore:People do not share one order")  # one group, where two are
def test_a_grid_search_finds_the_distance_and_the_number_of_groups():
    rankings = pm.simulate_rankings(300, 6, 3.0, distance="cayley", rng=1).rankings
    search = GridSearchCV(MallowsRanker(random_state=1), {"distance": ["cayley", "hamming"]}, cv=3)
    assert search.fit(rankings).best_params_ == {"distance": "cayley"}

    camps = pm.simulate_rankings(120, 6, [9.0, 9.0], rng=1)
    steps = make_pipeline(FunctionTransformer(), MallowsClusters(random_state=1))
    search = GridSearchCV(steps, {"mallowsclusters__n_clusters": [1, 2]}, cv=2)
    search.fit(camps.rankings)
    best = search.best_estimator_
    assert best[-1].n_clusters == 2
    alike = best.predict(camps.rankings) == camps.labels
    assert alike.mean() in (0.0, 1.0)
    assert np.allclose(best.predict_proba(camps.rankings).sum(axis=1), 1)


def test_a_recommender_states_what_it_recommends_with():
    clicks = pm.simulate_clicks(300, 12, 30.0, 4, rng=1).preferences
    table = csr_matrix((np.ones(len(clicks.codes)), clicks.codes, clicks.starts), shape=(300, 12))
    model = ClickRecommender(k=3, random_state=1).fit(table)
    items, probabilities = model.predict(table), model.predict_proba(table)
    recs = pm.recommend(model.posterior_, 3, clicks=clicks)
    assert np.array_equal(items, recs.items)
    is_there = items >= 0
    rows = np.arange(300)[:, None]
    stated = np.where(is_there, probabilities[rows, items], np.nan)
    assert np.allclose(stated, recs.probabilities, atol=1e-6, equal_nan=True)
    assert (probabilities[table.toarray() > 0] == 0).all()
    assert model.score(table) > 3 / 12  # of chance
    later = np.zeros((300, 12))
    later[rows[is_there[:, 0]], items[is_there[:, 0], :1]] = 1
    assert model.score(table, later) == 1.0
