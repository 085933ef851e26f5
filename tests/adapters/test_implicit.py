"""The signatures of `implicit`, alone and with the library itself."""

import inspect

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import pseudomallows as pm
from pseudomallows.adapters.implicit import NOTHING, MallowsRecommender

N_USERS, N_ITEMS = 150, 14


def matrix_of(clicks):
    ones = np.ones(len(clicks.codes), dtype=np.float32)
    return csr_matrix((ones, clicks.codes, clicks.starts), shape=(clicks.n_users, clicks.n_items))


@pytest.fixture(scope="module")
def user_items():
    clicks = pm.simulate_clicks(N_USERS, N_ITEMS, [8.0] * 2, 4, min_clicks=2, rng=1).preferences
    return matrix_of(clicks)


@pytest.fixture(scope="module")
def model(user_items):
    found = MallowsRecommender(random_state=1)
    found.fit(user_items, show_progress=False)
    return found


def test_one_user_and_many_get_what_recommend_says(model, user_items):
    expected = pm.recommend(model.posterior, 5)
    ids, scores = model.recommend(np.arange(N_USERS), user_items, N=5)
    assert ids.dtype == np.int32
    assert (ids == expected.items).all()
    assert (scores[ids >= 0] == expected.probabilities[ids >= 0]).all()
    one, probabilities = model.recommend(7, user_items[7], N=5)
    assert one.tolist() == ids[7].tolist()
    assert probabilities.tolist() == scores[7].tolist()
    assert (
        model.recommend([7, 7])[0][:, :5] == model.recommend([7, 7], user_items[[7, 7]])[0][:, :5]
    ).all()


def test_a_new_user_needs_no_refit(model):
    row = csr_matrix(np.isin(np.arange(N_ITEMS), [2, 5])[None].astype(float))
    ids, _ = model.recommend(99_999, row, N=3, recalculate_user=True)
    assert ids.tolist() == pm.recommend(model.posterior, 3, clicks={"x": [2, 5]}).items[0].tolist()


def test_items_are_filtered_or_chosen_from(model, user_items):
    best = model.recommend(3, user_items[3], N=4)[0]
    ids, _ = model.recommend(3, user_items[3], N=3, filter_items=best[:1])
    assert ids.tolist() == best[1:].tolist()
    some = [best[3], best[1]]
    ids, scores = model.recommend([3], user_items[[3]], N=4, items=some)
    assert ids[0].tolist() == [best[1], best[3], -1, -1]
    assert (scores[0, 2:] == NOTHING).all()
    assert model.recommend(3, user_items[3], filter_items=range(N_ITEMS))[0].tolist() == []
    liked = user_items[3].indices
    ids, scores = model.recommend(3, user_items[3], N=8, filter_already_liked_items=False)
    assert set(ids[: len(liked)]) == set(liked)
    assert (scores[: len(liked)] == 1).all()
    assert ids[len(liked)] == best[0]


def test_what_is_alike_and_why(model, user_items):
    ids, scores = model.similar_items(2, N=4)
    assert ids[0] == 2
    assert scores[0] == 1
    assert ids[1:].tolist() == pm.similar_items(model.posterior, 2, 3).codes.tolist()
    assert model.similar_items([2, 3], N=4)[0].shape == (2, 4)
    assert model.similar_items(2, N=2, filter_items=[2])[0].tolist() == ids[1:3].tolist()
    assert set(model.similar_items(2, items=[4, 5])[0]) == {4, 5}
    ids, _ = model.similar_users(9, N=5)
    assert ids[0] == 9
    assert ids[1:].tolist() == pm.similar_users(model.posterior, 9, 4).codes.tolist()
    item = int(model.recommend(9, user_items[9], N=1)[0][0])
    total, parts, _ = model.explain(9, user_items[9], item)
    assert total == pm.explain(model.posterior, 9, item).value
    assert {each for each, _ in parts} == set(user_items[9].indices)


def test_a_saved_model_answers_the_same(model, user_items, tmp_path):
    model.save(tmp_path / "m.pm")
    again = MallowsRecommender.load(tmp_path / "m.pm")
    assert (again.recommend([1, 2], user_items[[1, 2]])[0] == model.recommend([1, 2])[0]).all()


def test_bad_questions_are_refused(model, user_items):
    with pytest.raises(ValueError, match=r"call fit\(user_items\) first"):
        MallowsRecommender().recommend(0)
    with pytest.raises(ValueError, match="1 row for every user"):
        model.recommend([1, 2], user_items[1])
    with pytest.raises(ValueError, match="both filter_items and items"):
        model.recommend(1, filter_items=[1], items=[2])
    with pytest.raises(IndexError, match="not in the model"):
        model.recommend(1, items=[N_ITEMS])
    with pytest.raises(IndexError, match="users 0 to 149"):
        model.recommend(N_USERS)


@pytest.mark.slow
def test_the_library_takes_it_for_one_of_its_own(user_items):
    reason = "implicit is not installed"
    base = pytest.importorskip("implicit.recommender_base", reason=reason)
    evaluation = pytest.importorskip("implicit.evaluation", reason=reason)
    for name in ("fit", "recommend", "similar_items", "similar_users", "save", "load"):
        theirs = inspect.signature(getattr(base.RecommenderBase, name)).parameters
        ours = inspect.signature(getattr(MallowsRecommender, name)).parameters
        assert list(theirs) == list(ours)
    train, test = evaluation.leave_k_out_split(user_items.tocoo(), K=1, random_state=1)
    model = MallowsRecommender(random_state=1)
    model.fit(train)
    found = evaluation.ranking_metrics_at_k(model, train, test, K=5, show_progress=False)
    ids = model.recommend(np.arange(N_USERS), train, N=5)[0]
    is_evaluated = np.diff(test.indptr) > 0
    hits = [test[row].indices[0] in ids[row] for row in np.flatnonzero(is_evaluated)]
    assert found["precision"] == pytest.approx(np.mean(hits))
    assert found["precision"] > 0.3
