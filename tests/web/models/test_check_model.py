"""Are the stated probabilities calibrated? Asked of the service, and of the function itself."""

import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.data.splits import hide_random
from pseudomallows.web import service as service_module
from pseudomallows.web.errors import ServiceError
from pseudomallows.web.models import summary as check_module
from pseudomallows.web.models.model import Model
from pseudomallows.web.models.summary import NOTHING, check_model
from pseudomallows.web.stores.open import open_store
from webhelp import Client, make_app, wait_until


@pytest.fixture(scope="module")
def made():
    """A fit of some clicks, whose names are numbers, and those that came later."""
    prefs = pm.simulate_clicks(60, 12, 6.0, 4, rng=1).preferences
    split = hide_random(prefs, 2, np.random.default_rng(1))
    with warnings.catch_warnings(action="ignore"):  # few draws
        posterior = pm.fit(split.shown, "mcmc", n_draws=20, n_chains=1, rng=1)
    return posterior, split.hidden


def pairs_of(clicks):
    """User and item of each click, as text."""
    owners = clicks.users[clicks.owners].tolist()
    return list(zip(map(str, owners), map(str, clicks.items[clicks.codes].tolist()), strict=True))


def metric(client, name):
    lines = client.get("/metrics").text.splitlines()
    return [float(line.split()[1]) for line in lines if line.startswith(f"pseudomallows_{name} ")]


def test_the_service_says_what_the_function_says(made, tmp_path, monkeypatch):
    """On posted clicks of known users, by words, gauges and bins; and once for the same clicks."""
    posterior, later = made
    posterior.save(tmp_path / "m.pm")
    calls = []
    monkeypatch.setattr(
        service_module, "check_model", lambda *given: calls.append(1) or check_model(*given)
    )
    with Client(make_app(tmp_path / "m.pm", str(tmp_path / "s.sqlite"))) as client:
        client.post("/users/zoe/clicks", json={"clicks": ["0", "1"]})  # not in the model
        old = posterior.clicks.clicks_of(0).tolist()
        client.post("/users/0/clicks", json={"clicks": [str(item) for item in old]})
        nothing = client.get("/check").json()
        assert (nothing["answer"], nothing["words"]) == ("too few", NOTHING)
        assert (nothing["stated"], nothing["n_users"], nothing["bins"]) == (None, 0, [])
        assert (metric(client, "check_users"), metric(client, "check_stated")) == ([0.0], [])

        for user, item in pairs_of(later):
            client.post(f"/users/{user}/clicks", json={"clicks": [item]})
        answer = client.get("/check").json()
        expected = pm.check(posterior, later)
        assert answer == {"model": 1} | expected.figures()
        assert answer["n_users"] > 30
        assert answer["answer"] in ("yes", "no")
        for name in ("stated", "observed"):
            assert metric(client, f"check_{name}") == [pytest.approx(answer[name], rel=1e-5)]
        assert metric(client, "check_users") == [expected.n_users]
        assert client.get("/check").json() == answer
        assert len(calls) == 2
        client.delete("/users/zoe")
        assert client.get("/check").json() == answer
        assert len(calls) == 3


def test_it_is_made_now_and_then_if_there_are_new_clicks(made, tmp_path, monkeypatch):
    monkeypatch.setattr(service_module, "CHECK_SECONDS", 0.05)
    posterior, later = made
    posterior.save(tmp_path / "m.pm")
    with Client(make_app(tmp_path / "m.pm", str(tmp_path / "s.sqlite"))) as client:
        rounds, changes = [], client.app.service.changes

        async def counted():
            rounds.append(None)
            return await changes()

        client.app.service.changes = counted
        wait_until(lambda: len(rounds) > 3)
        assert metric(client, "check_users") == []
        user, item = pairs_of(later)[0]
        client.post(f"/users/{user}/clicks", json={"clicks": [item]})
        wait_until(lambda: metric(client, "check_users") == [1.0])
        answer = client.get("/check").json()
        assert (answer["answer"], answer["low"]) == ("too few", None)
        assert answer["words"].startswith("Too few users to tell: of 10 recommendations to 1 users")


def test_whoever_clicked_last_is_looked_at_with_all_their_clicks(made, tmp_path, monkeypatch):
    """In a store of more clicks than are read, too; the first clicks count first."""
    posterior, later = made
    model, pairs = Model(posterior, 1), pairs_of(later)
    store = open_store(str(tmp_path / "s.sqlite"))
    store.add(pairs)
    upload = store.begin_upload(1, 1)
    store.add_part(upload, [("59", str(item)) for item in range(12)])
    store.finish_upload(upload)
    monkeypatch.setattr(check_module, "MOST_CLICKS", 3)
    last = list(dict.fromkeys(user for user, _ in reversed(pairs[-3:])))
    new = check_module.new_clicks(model, store)
    for user in last:
        mine = [item for name, item in pairs if name == user]
        row = model.rows[user]
        order = np.argsort(new.times[new.owners == row], kind="stable")
        found = [str(item) for item in new.clicks_of(row)[order].tolist()]
        assert found[: len(mine)] == mine
    assert (new.n_clicks > 0).sum() == len(last)
    monkeypatch.setattr(check_module, "MOST_CLICKS", 200_000)
    monkeypatch.setattr(check_module, "MOST_USERS", 7)
    assert check_model(model, store).n_users == 7
    store.close()


def test_a_model_that_keeps_no_users_is_refused_in_words(made, tmp_path):
    model, store = Model(made[0], 1), open_store(str(tmp_path / "s.sqlite"))
    model.clicks = model.clicks.take(np.empty(0, dtype=np.int64))  # as of a fit of parts
    with pytest.raises(ServiceError, match="keeps no users") as caught:
        check_model(model, store)
    assert caught.value.status == 404
    store.close()


def test_tables_made_for_a_check_are_not_kept(made, tmp_path):
    posterior, later = made
    model, store = Model(posterior, 1), open_store(str(tmp_path / "s.sqlite"))
    store.add(pairs_of(later))
    before = model.table_bytes()
    check_model(model, store)
    assert model.table_bytes() == before
    store.close()
