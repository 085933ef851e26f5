"""Results in a notebook: what they show, and that names from strangers are text only."""

import inspect
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.data.frames import rows_of
from pseudomallows.markup import bar, calibration, cell, interval, reliability, table

HOSTILE = ["<script>alert(1)</script>", '" onload="x', "&amp; </td></table>", "x" * 1000, "ok"]


class Reader(HTMLParser):
    """Elements and their attributes, and whether each end fits its start."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.attributes, self.open = [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [key for key, _ in attrs]
        if tag not in ("rect", "circle", "line"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_on_the_diagonal_stated_and_observed_are_equal():
    found = calibration([(0.1, 0.1, 0.02, 400), (0.2, 0.3, 0.5, 100)])
    (x, y, low, high, radius), (_, _, lowest, highest, small) = found["dots"]
    assert x - 46 == pytest.approx(274 - y)
    assert (low, high) == (pytest.approx(y + 13.2), pytest.approx(y - 13.2))
    assert (lowest, highest) == (274, 10)  # errors end at the frame
    assert (radius, small) == (10, 5)
    assert [share for share, _, _ in found["ticks"]] == [0, 0.2, 0.4]


def test_a_picture_has_a_dot_for_each_point_and_text_to_select():
    page = reliability([(0.1, 0.1, 0.02, 400), (0.2, 0.3, 0.5, 100)])
    found = Reader(page).elements
    assert found.count("circle") == 2
    assert found.count("text") == 8
    assert ">20\xa0%</text>" in page


def test_bars_end_at_all_and_say_so():
    assert 'width="100.0"' in bar(1.7, "170 %")
    assert 'width="0.0"' in bar(-1, "none")
    assert 'x="0.0" width="50.0"' in interval(1, 2, 1.5, 4)
    assert interval(3, 3, 3, 4).endswith(" 3")


def test_cells_escape_text_only():
    assert cell(True) == "<bdi>True</bdi>"
    assert len(cell("y" * 500)) < 100
    assert table(["<a>"], [[bar(0.5, "<")]]).count("&lt;") == 3


def quiet(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*arguments, **options)


@pytest.fixture(scope="module")
def clicks():
    data = pm.simulate_clicks(40, 5, [6, 6], mean_clicks=2, rng=1)
    users = [f"{HOSTILE[row % 5]}{row}" for row in range(40)]
    return data.preferences.rename(items=HOSTILE, users=users)


@pytest.fixture(scope="module")
def results(clicks):
    """One of every kind that a notebook shows."""
    rows = [(user, HOSTILE[0], HOSTILE[1]) for user in range(9)]
    posterior = quiet(pm.fit, clicks, "mcmc", n_clusters=2, n_draws=5, n_chains=1, rng=1)
    personal = pm.fit(clicks, "personal", calibrate=False, rng=1)
    options = {"method": "mcmc", "alpha": 5.0, "n_draws": 5, "n_chains": 1, "rng": 1}
    return {
        "Clicks": clicks,
        "Pairs": pm.Preferences.from_pairs(rows),
        "Posterior": posterior,
        "PersonalFit": personal,
        "Recommendations": pm.recommend(personal, 2),
        "Evaluation": quiet(pm.evaluate, clicks, 1, 1, **options),
        "ClusterCurve": pm.choose_clusters(clicks, largest=2, rng=1),
    }


@pytest.mark.parametrize(
    "kind",
    [
        "Clicks",
        "Pairs",
        "Posterior",
        "PersonalFit",
        "Recommendations",
        "Evaluation",
        "ClusterCurve",
    ],
)
def test_a_notebook_shows_a_small_table_and_no_name_becomes_an_element(kind, results):
    page = results[kind]._repr_html_()
    found = Reader(page)
    assert f"<b>{kind}</b>" in page
    assert "table" in found.elements
    known = {"div", "b", "table", "thead", "tbody", "tr", "th", "td", "bdi"}
    assert set(found.elements) <= known | {"svg", "rect", "circle", "line", "text"}
    assert not any(key.startswith("on") for key in found.attributes)
    assert len(page) < 12_000


def test_results_print_as_tables_with_names_and_short_numbers(results):
    recs = results["Recommendations"]
    first = recs.to_rows()[0]
    title, head, line, *_ = repr(recs).splitlines()
    assert title == "Recommendations: 40 users"
    assert head.split() == ["user", "place", "item", "probability"]
    assert line.startswith(" ".join(str(first["user"]).split()))
    assert line.split()[-1] == f"{first['probability']:.3f}"

    rows = results["Posterior"].summary()
    assert isinstance(rows, list)
    assert str(rows).splitlines()[0].split() == ["item", "rank", "lowest", "highest", "mean"]
    assert str(rows).splitlines()[1].split()[-1] == f"{rows[0]['mean']:.2f}"
    assert all(len(str(row["mean"])) <= 8 for row in rows)
    assert str(rows[0]["item"]) in repr(results["Posterior"])


def test_long_tables_print_their_first_rows_only():
    lines = repr(rows_of({"user": np.arange(12_340, 12_440), "share": np.ones(100)})).splitlines()
    assert lines[0] == " user  share"
    assert lines[1] == "12340   1.00"  # a name is no number
    assert lines[-1] == "... and 80 more"


def test_what_tab_shows_is_public():
    assert set(dir(pm)) == {*pm.__all__, "paper"}
    assert {"n_chains", "warmup", "held_out"} <= set(inspect.signature(pm.fit).parameters)


def test_recommendations_show_names_and_probabilities(results):
    found = results["Recommendations"]
    page, row = found._repr_html_(), found.to_rows()[0]
    assert f"{100 * row['probability']:.1f}\xa0%" in page
    assert "first 5 of 40 users" in page


def test_an_evaluation_shows_its_picture(results):
    page = results["Evaluation"]._repr_html_()
    assert page.count('class="dot"') == len(results["Evaluation"].calibration.counts)
    assert f"{100 * results['Evaluation'].popularity:.1f}\xa0%" in page


def test_a_posterior_shows_five_items_of_each_cluster():
    prefs = pm.simulate_rankings(20, 9, 5, rng=1).preferences
    page = pm.fit(prefs, "pseudo", alpha=5, rng=1)._repr_html_()
    assert page.count("<circle") == 9
    many = quiet(pm.fit, prefs, "pseudo", n_clusters=2, n_draws=5, rng=1)._repr_html_()
    assert many.count("<circle") == 10
    assert "cluster 1, " in many
    assert "cluster 1 is cluster=0" in many


def test_signatures_can_be_read():
    for function in (pm.fit, pm.evaluate, pm.recommend, pm.distance, pm.Preferences.from_clicks):
        assert "_NestedSequence" not in str(inspect.signature(function))


def test_intervals_of_alpha_and_names_of_a_consensus():
    prefs = pm.Preferences.from_orderings([["rum", "ale", "gin"]] * 12)
    posterior = quiet(pm.fit, prefs, "mcmc", n_draws=100, rng=1)
    assert posterior.point_consensus(names=True).tolist() == ["rum", "ale", "gin"]
    low, high = posterior.intervals("alpha")[0]
    inside = (posterior.alpha >= low) & (posterior.alpha <= high)
    assert 0.95 <= inside.mean() < 0.97
    narrow = posterior.alpha_intervals(0.5)[0]
    assert narrow[1] - narrow[0] < high - low
    assert posterior.alpha_intervals(1).tolist() == [[posterior.alpha.min(), posterior.alpha.max()]]
    with pytest.raises(ValueError, match="intervals are of 'alpha' or of the ranks"):
        posterior.intervals("beta")
