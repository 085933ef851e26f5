"""The page about a fit: what is on it, and what names from strangers cannot do to it."""

import importlib
import os
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.show.page import percent, plain

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # no script, no network
HOSTILE = [
    "<script>alert(1)</script>",
    '" onmouseover="alert(1)" x="',
    "' onload='alert(1)",
    "$x^2$ {{ title }} {% raw %} {# of a template",
    "</svg></table></style><img src=x onerror=alert(1)>",
    "two\nlines\r\tand\x00\x07\x1b[31m controls",
    "👩‍👩‍👧 emoji 🎉",
    "left \u202eright-to-left\u2066 marks\u200f",
    "x" * 10_000,
    "<b>" * 5_000,
    "&lt;script&gt; &amp; <!-- a comment",
    "half \ud800 a character",
    "",
    "http://example.com/<a href='http://example.com'>",
    "]]></title><meta http-equiv=refresh content='0;url=http://example.com'>",
]


class Reader(HTMLParser):
    """Every element with its attributes, and the text."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.elements, self.text, self.comments = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, tuple(attrs)))

    def handle_data(self, data):
        self.text.append(data)

    def handle_comment(self, data):
        self.comments.append(data)

    def shape(self):
        """The elements, without the titles, which are names."""
        return [
            (tag, [pair for pair in attrs if pair[0] != "title"]) for tag, attrs in self.elements
        ]

    def words(self):
        return re.sub("[ \n]+", " ", " ".join(self.text))


def quiet_fit(*arguments, **options):
    """A fit too small to converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return pm.fit(*arguments, **options)


def write(posterior, folder, **options):
    path = folder / "report.html"
    pm.report(posterior, path, **options)
    return path.read_text(encoding="utf-8")


def renamed(posterior, items, users=None):
    """The same fit with other names."""
    names = np.array(items, dtype=object)
    users = posterior.users if users is None else np.array(users, dtype=object)
    clicks = posterior.clicks
    if clicks is not None:
        clicks = replace(clicks, items=names, users=users)
    return replace(posterior, items=names, users=users, data=clicks)


@pytest.fixture(scope="module")
def full():
    data = pm.simulate_rankings(30, 5, 4, rng=1)
    return pm.fit(data.preferences, "pseudo", alpha=4, rng=1)


@pytest.fixture(scope="module")
def clicks():
    return pm.simulate_clicks(60, 15, [8, 8], mean_clicks=4, sizes=[40, 20], rng=1)


@pytest.fixture(scope="module")
def clustered(clicks):
    options = {"n_clusters": 2, "alpha": 8.0, "n_draws": 20, "n_chains": 2, "rng": 1}
    return quiet_fit(clicks.preferences, "mcmc", **options)


@pytest.fixture(scope="module")
def personal(clicks):
    return pm.fit(clicks.preferences, "personal", calibrate=False, rng=1)


@pytest.fixture(scope="module")
def evaluation(clicks):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return pm.evaluate(
            clicks.preferences, hide=2, k=2, method="mcmc", alpha=8.0, n_draws=20, rng=1
        )


def test_report_is_the_function_even_after_the_module_is_imported():
    assert importlib.import_module("pseudomallows.show.report").report is pm.report


def test_without_jinja2_the_error_names_the_extra_and_nothing_is_written(full, tmp_path):
    full.save(tmp_path / "posterior.pm")
    script = (
        "import sys; sys.modules['jinja2'] = None; from pseudomallows.cli import main; "
        "sys.exit(main(['report', 'posterior.pm']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    wanted = "pseudomallows: a report needs Jinja2: pip install 'pseudomallows[report]'"
    assert done.stderr.splitlines() == [wanted]
    assert os.listdir(tmp_path) == ["posterior.pm"]


def test_a_page_needs_no_plotting_library(full, tmp_path):
    full.save(tmp_path / "posterior.pm")
    script = (
        "import sys, pseudomallows as pm; pm.report(pm.load('posterior.pm'), 'report.html'); "
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)


@pytest.mark.parametrize("kind", ["full", "clustered", "personal"])
def test_hostile_names_are_text_only(kind, tmp_path, request):
    posterior = request.getfixturevalue(kind)
    n_items, n_users = posterior.n_items, len(posterior.users)
    items = HOSTILE[:n_items]
    users = [f"{HOSTILE[row % len(HOSTILE)]}{row}" for row in range(n_users)]
    plain_page = Reader(write(posterior, tmp_path))
    page = write(renamed(posterior, items, users), tmp_path)
    found = Reader(page)
    assert found.shape() == plain_page.shape()  # no element, no attribute comes from a name
    assert not found.comments
    for attack in ("<script", "<img", "<b>", "onerror=alert(1)>", "http-equiv=refresh content='"):
        assert attack not in page
    text = found.words()
    for item in items:
        assert plain(item, 24).rstrip("…") in text
    if posterior.clicks is not None:
        assert plain(users[0], 40) in text
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f\x00-\x08\x0b-\x1f]", page)


def test_hostile_titles_and_commands_are_text_only(full, tmp_path):
    before = Reader(write(full, tmp_path, title="mild", command="mild"))
    for bad in HOSTILE[:-3]:
        page = Reader(write(full, tmp_path, title=bad or "mild", command=bad or "mild"))
        assert page.shape() == before.shape()


@pytest.mark.parametrize("kind", ["full", "clustered", "personal"])
def test_the_same_posterior_gives_the_same_bytes(kind, tmp_path, request):
    posterior = request.getfixturevalue(kind)
    first = write(posterior, tmp_path)
    posterior.save(tmp_path / "posterior.pm")
    assert write(pm.load(tmp_path / "posterior.pm"), tmp_path) == first


def test_the_same_fit_at_another_time_gives_the_same_bytes(full, tmp_path):
    later = replace(full, settings=full.settings | {"seconds": 12345.678})
    assert write(later, tmp_path) == write(full, tmp_path)


@pytest.mark.parametrize("kind", ["full", "clustered", "personal"])
def test_the_page_needs_nothing_from_outside(kind, tmp_path, request, evaluation):
    posterior = request.getfixturevalue(kind)
    reader = Reader(write(posterior, tmp_path, evaluation=None if kind == "full" else evaluation))
    links = [
        value for _, attrs in reader.elements for key, value in attrs if key in ("href", "src")
    ]
    targets = {value for _, attrs in reader.elements for key, value in attrs if key == "id"}
    assert links
    assert all(link[0] == "#" and link[1:] in targets for link in links)
    names = {tag for tag, _ in reader.elements}
    assert not names & {"script", "link", "iframe", "object", "embed", "form", "base"}
    assert ("meta", (("http-equiv", "Content-Security-Policy"), ("content", POLICY))) in (
        reader.elements
    )
    assert ("html", (("lang", "en"),)) in reader.elements
    assert not any(key.startswith("on") for _, attrs in reader.elements for key, _ in attrs)


@pytest.mark.parametrize("kind", ["full", "clustered", "personal"])
def test_tables_have_heads_and_pictures_have_words(kind, tmp_path, request, evaluation):
    posterior = request.getfixturevalue(kind)
    elements = Reader(
        write(posterior, tmp_path, evaluation=None if kind == "full" else evaluation)
    ).elements
    count = [tag for tag, _ in elements].count
    assert count("table") == count("caption") == count("thead") > 3
    assert all(dict(attrs).get("scope") in ("row", "col") for tag, attrs in elements if tag == "th")
    for element, attrs in elements:
        given = dict(attrs)
        if element == "svg":
            assert given.get("aria-hidden") == "true" or given["aria-label"]


def test_a_fit_of_rankings_shows_its_consensus(full, tmp_path):
    page = write(full, tmp_path, title="Fruit & nuts")
    text = Reader(page).words()
    assert "<title>Fruit &amp; nuts</title>" in page
    assert "Each user gave a ranking of all items" in text
    assert "4.00 given" in text
    for row in full.summary():
        label = f"mean rank {row['mean']:.1f}, 95\u00a0% interval "
        assert label in page
    assert "largest R-hat" not in text
    assert "Are the probabilities right" not in text
    assert "Examples" not in text
    assert "The clusters" not in text


def test_a_tempered_fit_says_so_with_its_evidence(full, tmp_path):
    assert "tempering" not in write(full, tmp_path)
    found = {"powers": [1.0, 0.5, 0.0], "log_evidence": -53.8, "log_evidence_error": 0.04}
    page = write(replace(full, settings=full.settings | {"tempered": found}), tmp_path)
    assert "Parallel tempering with 3 temperatures" in page
    assert "the log evidence is -53.80 ± 0.04." in page


def test_clusters_are_shown_with_shares_and_what_sets_them_apart(clustered, tmp_path):
    text = Reader(write(clustered, tmp_path)).words()
    shares = clustered.shares.mean(axis=(0, 1))
    ranks = np.arange(1, 16)
    means = [clustered.rank_probabilities(cluster) @ ranks for cluster in range(2)]
    most = (means[1] - means[0]).argmax()
    assert f"Group 1, {percent(shares[0])}" in text
    expected = f"likes more here others {clustered.items[most]} "
    assert f"{expected}{means[0][most]:.1f} {means[1][most]:.1f}" in text
    assert "All 15 items" in text
    assert "60 users fall into 2 groups with different tastes" in text


def test_examples_tell_what_was_clicked_and_what_comes_next(clustered, tmp_path):
    text = Reader(write(clustered, tmp_path, n_examples=2)).words()
    assert "User 0" in text
    assert "User 59" in text
    assert text.count("Recommended next") == 2
    found = pm.recommend(clustered, 3, users=[59])
    clicked = clustered.clicks.clicks_of(59).tolist()
    assert len(clicked) > 1
    assert f"Clicked {' , '.join(map(str, clicked[:-1]))} and {clicked[-1]} ." in text
    for item, probability in zip(found.items[0], found.probabilities[0], strict=True):
        assert f"{item} {percent(probability)}" in text
    assert "Recommended next" not in Reader(write(clustered, tmp_path, n_examples=0)).words()


def test_an_evaluation_is_shown_with_its_numbers(clustered, evaluation, tmp_path):
    text = Reader(write(clustered, tmp_path, evaluation=evaluation)).words()
    assert f"{percent(evaluation.accuracy)} were right" in text
    assert f"off by {100 * evaluation.calibration.error:.1f} points on average" in text
    assert f"evaluated on {evaluation.evaluated.by}, hidden from it" in text
    table = evaluation.calibration
    for said, true, count in zip(table.stated, table.observed, table.counts, strict=True):
        assert f"{percent(said)} {percent(true)} {count}" in text
    assert "pm.evaluate(prefs" not in text
    assert "pm.evaluate(prefs" in Reader(write(clustered, tmp_path)).words()


def test_a_personal_fit_shows_no_consensus_of_all(personal, evaluation, tmp_path):
    page = write(personal, tmp_path)
    text = Reader(page).words()
    assert "Each user has their own order, so there is no consensus to show" in text
    assert "95\u00a0% interval" not in text
    assert 'class="cell"' not in page
    counts = personal.clicks.item_counts()
    best = personal.ties[0]
    assert f"users 1 {best} {counts[best]}" in text
    assert "with care" in text
    checked = Reader(write(personal, tmp_path, evaluation=evaluation)).words()
    assert "probabilities are off by" in checked
    assert f"Measured on {evaluation.evaluated.by}, hidden from the fit" in checked


def test_the_headline_says_what_comes_first(tmp_path):
    prefs = pm.Preferences.from_orderings([["rum", "ale", "gin"]] * 9)
    page = write(pm.fit(prefs, "pseudo", alpha=9, rng=1), tmp_path)
    assert "<h1>First of 3 items: <bdi>rum</bdi>" in re.sub(r"\s*\n\s*", "", page)


def test_a_recommendation_comes_with_the_clicks_that_speak_for_it(tmp_path):
    """Tea and cake go together, nails and a hammer; ann gets the cake for the tea."""
    people = {f"t{n}": ["TEA IN A TIN", "SPONGE CAKE"] for n in range(8)}
    people |= {f"h{n}": ["steel nails", "hammer"] for n in range(8)}
    prefs = pm.Preferences.from_clicks(people | {"ann": ["TEA IN A TIN"]})
    fit = pm.fit(prefs, "personal", calibrate=False, rng=1)
    text = Reader(write(fit, tmp_path, n_examples=17)).words()
    assert "User ann Clicked Tea in a tin" in text
    assert "Sponge cake because of Tea in a tin" in text
    assert "hammer because of Tea" not in text
    assert "TEA" not in text


def test_comparisons_show_who_comes_before_whom(tmp_path):
    rows = [(user, "ale", "gin") for user in range(20)] + [
        (user, "gin", "rum") for user in range(20)
    ]
    posterior = quiet_fit(pm.Preferences.from_pairs(rows), "mcmc", n_draws=50, rng=1)
    page = write(posterior, tmp_path)
    share = posterior.pair_probabilities()[0, 2]  # ale before rum
    assert share > 0.9
    assert (
        f'<td class="wins" style="--strength:{70 * (2 * share - 1):.0f}%">{100 * share:.0f}' in page
    )
    assert page.count('class="self"') == 3
    assert "pseudomallows pairs MODEL" in page


@pytest.mark.parametrize("n_items", [5, 50, 500])
def test_many_items_stay_readable_and_the_file_small(n_items, tmp_path):
    data = pm.simulate_rankings(20, n_items, 3.0 * n_items, rng=1)
    names = [f"a rather long name of item {code}" for code in range(n_items)]
    posterior = pm.fit(
        data.preferences.rename(items=names), "pseudo", alpha=n_items, n_draws=20, rng=1
    )
    page = write(posterior, tmp_path)
    assert len(page) < 1_000_000
    assert page.count('class="mean"') == min(n_items, 40)
    assert ("All " in page) == (n_items > 40)
    for code in range(n_items):
        assert f"a rather long name of item {code}" in page


def test_an_error_midway_leaves_the_old_file(full, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="the disk is full"):
            pm.report(full, path)
    broken = replace(full, consensus=full.consensus[:, :, :, :0])
    with pytest.raises((ValueError, IndexError, ArithmeticError)):
        pm.report(broken, path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_what_cannot_be_reported_is_refused(full, evaluation, tmp_path):
    with pytest.raises(TypeError, match="posterior must come from fit, got str"):
        pm.report("posterior", tmp_path / "report.html")
    with pytest.raises(TypeError, match="evaluation must come from evaluate, got int"):
        pm.report(full, tmp_path / "report.html", evaluation=3)
    with pytest.raises(ValueError, match="evaluation must be of the items of the fit"):
        pm.report(full, tmp_path / "report.html", evaluation=evaluation)
    with pytest.raises(ValueError, match="n_examples must be 0 or more, got -1"):
        pm.report(full, tmp_path / "report.html", n_examples=-1)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        pm.report(full, tmp_path / "nowhere" / "report.html")


def test_a_default_fit_says_what_was_chosen_and_what_a_probability_means(clicks, tmp_path):
    fit = pm.fit(clicks.preferences, rng=1)
    words = Reader(write(fit, tmp_path)).words()
    assert f"The method was chosen by default: {fit.settings['chosen']}" in words
    assert "probabilities are about a click that is missing at random" in words
