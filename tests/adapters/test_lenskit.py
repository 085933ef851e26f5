"""A LensKit pipeline with our scorer, with the library itself."""

import pickle

import numpy as np
import pytest

import pseudomallows as pm

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made():
    pd = pytest.importorskip("pandas")
    data = pytest.importorskip("lenskit.data", reason="lenskit is not installed")
    clicks = pm.simulate_clicks(120, 14, [8.0] * 2, 4, min_clicks=2, rng=1).preferences
    owners = np.repeat(np.arange(120), clicks.n_clicks)
    frame = pd.DataFrame({"user_id": owners + 1000, "item_id": clicks.codes + 500})
    return data.from_interactions_df(frame), frame


@pytest.fixture(scope="module")
def trained(made):
    from lenskit.pipeline import topn_pipeline
    from lenskit.training import TrainingOptions

    from pseudomallows.adapters.lenskit import MallowsScorer

    pipe = topn_pipeline(MallowsScorer(k=5), n=5)
    pipe.train(made[0], TrainingOptions(rng=1))
    return pipe


def test_a_pipeline_recommends_what_recommend_does(trained, made):
    from lenskit import recommend

    fitted = trained.node("scorer").component.posterior
    items = made[0].items.ids()
    for user in (1003, 1017):
        row = made[0].users.number(user)
        expected = pm.recommend(fitted, 5, users=[row])
        found = recommend(trained, user, n=5)
        assert found.ids().tolist() == items[expected.items[0]].tolist()
        assert found.scores() == pytest.approx(expected.probabilities[0], abs=1e-6)


def test_a_history_is_enough_and_what_is_not_known_has_no_score(trained):
    from lenskit.data import ItemList, RecQuery

    scorer = trained.node("scorer").component
    candidates = ItemList(item_ids=[501, 502, 503, 99])
    history = ItemList(item_ids=[502, 505, 77])
    found = scorer(RecQuery(user_id=5, history_items=history), candidates)
    scores = found.scores()
    assert np.isnan(scores[[1, 3]]).all()
    codes = scorer.items.numbers([501, 503, 502, 505])
    expected = pm.recommend(
        scorer.posterior, 14, clicks={"x": codes[2:].tolist()}, window=5, only=codes[:2].tolist()
    )
    stated = dict(zip(expected.items[0].tolist(), expected.probabilities[0].tolist(), strict=True))
    assert scores[[0, 2]] == pytest.approx([stated[code] for code in codes[:2].tolist()], abs=0.01)
    nobody = scorer(RecQuery(), candidates).scores()
    assert np.isfinite(nobody[:3]).all()


def test_a_trained_scorer_is_pickled_and_configured(trained, made):
    from lenskit.data import ItemList
    from lenskit.training import TrainingOptions

    from pseudomallows.adapters.lenskit import MallowsScorer

    scorer = trained.node("scorer").component
    again = pickle.loads(pickle.dumps(scorer))
    candidates = ItemList(item_ids=[501, 502, 503])
    ours, theirs = (one(1003, candidates).scores() for one in (scorer, again))
    assert ours == pytest.approx(theirs, nan_ok=True)
    other = MallowsScorer(method="matched", options={"n_draws": 300, "n_chains": 2})
    other.train(made[0], TrainingOptions(rng=1))
    assert other.posterior.method == "matched"
    kept = other.posterior
    other.train(made[0], TrainingOptions(retrain=False))
    assert other.posterior is kept


def test_their_batch_and_metrics_work(made):
    from lenskit import batch
    from lenskit.metrics import Recall, RunAnalysis
    from lenskit.pipeline import topn_pipeline
    from lenskit.splitting import SampleFrac, sample_users
    from lenskit.training import TrainingOptions

    from pseudomallows.adapters.lenskit import MallowsScorer

    split = sample_users(made[0], 60, SampleFrac(0.3, rng=1), rng=1)
    pipe = topn_pipeline(MallowsScorer(k=5), n=5)
    pipe.train(split.train, TrainingOptions(rng=1))
    found = batch.recommend(pipe, split.test.keys(), 5, n_jobs=1)
    analysis = RunAnalysis()
    analysis.add_metric(Recall(5))
    recall = analysis.measure(found, split.test).list_summary().loc["Recall@5", "mean"]
    assert recall > 0.5
