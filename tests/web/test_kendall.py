"""The service with models by Kendall's distance, as people run it: a process, asked by HTTP."""

import pytest

import pseudomallows as pm
from pseudomallows.web.jobs.child import refit
from pseudomallows.web.stores.open import open_store
from webhelp import Process, make_model, wait_until


def wait_for(service, job):
    """The answer of a job that has ended."""
    found = {}

    def has_ended():
        found.update(service.ask(f"/jobs/{job}")[1])
        return found["state"] in ("done", "failed", "cancelled")

    wait_until(has_ended)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "n_clusters", "how"), [("mcmc", 2, "update"), ("personal", 1, "fit")]
)
def test_it_recommends_takes_clicks_and_learns_them(tmp_path, method, n_clusters, how):
    posterior = make_model(
        tmp_path / "m.pm", method=method, n_clusters=n_clusters, distance="kendall"
    )
    with Process(tmp_path / "m.pm", tmp_path / "s.sqlite", "--rate", "1000") as service:
        status, answer = service.ask("/recommend", {"clicks": ["item 1", "item 4"], "k": 4})
        assert status == 200
        new = pm.recommend(posterior, 4, clicks={"x": ["item 1", "item 4"]}).to_rows()
        assert rows_of(answer) == [(row["item"], row["probability"]) for row in new]
        status, answer = service.ask("/users/user%203/recommendations?k=3")
        assert status == 200
        known = pm.recommend(posterior, 3, users=["user 3"]).to_rows()
        assert rows_of(answer) == [(row["item"], row["probability"]) for row in known]

        assert service.ask("/users/zoe/clicks", {"clicks": ["item 1", "item 4"]})[0] == 200
        status, answer = service.ask("/users/zoe/recommendations?k=4")
        assert rows_of(answer) == [(row["item"], row["probability"]) for row in new]
        status, answer = service.ask("/recommend", {"clicks": ["no such item"]})
        assert (status, "no such item" in str(answer)) == (422, True)

        status, job = service.ask("/refit", {})
        assert status == 202
        done = wait_for(service, job["job"])
        assert (done["state"], done["how"]) == ("done", how)
        wait_until(lambda: service.ask("/model")[1]["model"] == 2)
        newer = pm.load(tmp_path / "m.pm.d" / "000002.pm")
        assert newer.settings["distance"] == "kendall"
        assert "zoe" in newer.users.tolist()
        status, answer = service.ask("/users/zoe/recommendations?k=3")
        known = pm.recommend(newer, 3, users=["zoe"]).to_rows()
        assert rows_of(answer) == [(row["item"], row["probability"]) for row in known]


def rows_of(answer):
    return [(row["item"], row["probability"]) for row in answer["recommendations"]]


@pytest.mark.parametrize("request_of", [{"clusters": 2}, {"method": "personal"}, {}])
def test_a_refit_keeps_the_distance(tmp_path, request_of):
    posterior = make_model(tmp_path / "m.pm", distance="kendall")
    store = open_store(str(tmp_path / "s.sqlite"))
    store.add([("zoe", "item 1"), ("zoe", "item 2"), ("user 1", "item 5")])
    store.close()
    request = {"store": str(tmp_path / "s.sqlite"), **request_of}
    found = refit(posterior, request, posterior.clicks)
    assert found.settings["distance"] == "kendall"
    assert found.n_clusters == request_of.get("clusters", 1)


def test_a_refit_by_a_method_of_the_footrule_says_so(tmp_path):
    posterior = make_model(tmp_path / "m.pm", distance="kendall")
    store = open_store(str(tmp_path / "s.sqlite"))
    store.close()
    request = {"store": str(tmp_path / "s.sqlite"), "method": "matched"}
    with pytest.raises(ValueError, match=r"footrule|method='mcmc'"):
        refit(posterior, request, posterior.clicks)
