import sys
from dataclasses import replace
from types import ModuleType

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import pseudomallows as pm
from pseudomallows import plots

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(scope="module")
def posterior():
    names = ["plain", "dear $5", "α-β", "a name that is much too long to be shown", "x", "y"]
    prefs = pm.simulate_rankings(40, 6, 2, rng=1).preferences.rename(items=names)
    return pm.fit(prefs, "mcmc", n_draws=100, rng=1)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_heat_shows_the_probabilities_in_the_order_of_the_consensus(posterior):
    ax = pm.plots.heat(posterior)
    shown = np.asarray(ax.collections[0].get_array()).reshape(6, 6)
    order = np.argsort(posterior.point_consensus())
    assert shown == pytest.approx(posterior.rank_probabilities()[order].T)
    assert ax.yaxis_inverted()
    ax.figure.canvas.draw()


def test_pairs_shows_who_comes_before_whom_in_the_order_of_the_consensus(posterior):
    ax = pm.plots.pairs(posterior)
    shown = np.asarray(ax.collections[0].get_array()).reshape(6, 6)
    order = np.argsort(posterior.point_consensus())
    draws = posterior.consensus.reshape(-1, 6)[:, order]
    for i, j in ((0, 1), (4, 2), (5, 0)):
        assert shown[i, j] == pytest.approx((draws[:, i] < draws[:, j]).mean())
    assert ax.yaxis_inverted()
    assert ax.get_yticklabels()[0].get_text() == ax.get_xticklabels()[0].get_text()
    ax.figure.canvas.draw()


def test_pairs_of_many_items_have_no_names():
    prefs = pm.simulate_rankings(10, 70, 2, rng=1).preferences
    many = pm.fit(prefs, "pseudo", alpha=2, n_draws=5, rng=1)
    ax = pm.plots.pairs(many)
    assert ax.get_ylabel() == "items, by consensus"
    assert len(ax.get_yticks()) < 20


@pytest.fixture(scope="module")
def clustered():
    data = pm.simulate_rankings(150, 6, [6, 6], sizes=[100, 50], rng=1)
    return pm.fit(data.preferences, "mcmc", n_clusters="auto", n_draws=500, rng=1)


def test_clusters_are_shown_with_their_shares_and_certainty(clustered):
    ax = pm.plots.shares(clustered)
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == pytest.approx(clustered.shares.mean(axis=(0, 1)))
    assert heights[0] > heights[1]
    ax = pm.plots.certainty(clustered)
    assert sum(bar.get_height() for bar in ax.patches) == 150
    assert "cluster 2 (" in pm.plots.heat(clustered, cluster=1).get_title()
    assert "cluster 1 (" in pm.plots.intervals(clustered, cluster=0).get_title()
    ax.figure.canvas.draw()


def test_the_elbow_marks_the_number_that_was_chosen(clustered, posterior):
    ax = pm.plots.elbow(clustered)
    assert ax.get_title() == "2 clusters chosen"
    line = ax.lines[0]
    assert line.get_xdata().tolist() == clustered.settings["curve"]["n_clusters"]
    assert line.get_ydata() == pytest.approx(clustered.settings["curve"]["means"])
    curve = pm.sampling.ClusterCurve(np.array([1, 2]), np.array([[-3.0, -4.0], [-3.0, -4.1]]))
    assert pm.plots.elbow(curve).get_title() == "One cluster chosen"
    with pytest.raises(ValueError, match="fit with n_clusters='auto'"):
        pm.plots.elbow(posterior)


def test_intervals_put_the_best_item_on_top(posterior):
    ax = pm.plots.intervals(posterior, 0.9)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    best = posterior.items[posterior.point_consensus().argmin()]
    assert labels[0] == best.replace("$", r"\$")
    assert ax.yaxis_inverted()
    assert "90%" in ax.get_title()
    assert r"dear \$5" in labels
    assert any(label.endswith("…") and len(label) == 24 for label in labels)
    ax.figure.canvas.draw()


def test_trace_draws_every_chain(posterior):
    ax = pm.plots.trace(posterior)
    assert len(ax.lines) == 4
    assert ax.lines[2].get_ydata().tolist() == posterior.alpha[2, :, 0].tolist()
    ax = pm.plots.trace(posterior, "α-β")
    assert ax.lines[0].get_ydata().tolist() == posterior.consensus[0, :, 0, 2].tolist()
    assert ax.get_ylabel() == "rank of α-β"


def test_rank_histograms_hold_every_draw(posterior):
    ax = pm.plots.rank_histograms(posterior, "x", n_bins=10)
    counts = np.array([patch.get_data().values for patch in ax.patches])
    assert counts.shape == (4, 10)
    assert (counts.sum(axis=1) == 100).all()
    assert (counts.sum(axis=0) == 40).all()


def test_reliability_shows_stated_against_observed():
    data = pm.simulate_clicks(200, 20, 8, rng=1)
    result = pm.evaluate(
        data.preferences, k=3, truth=data.rankings, method="mcmc", alpha=8.0, n_draws=300, rng=1
    )
    ax = pm.plots.reliability(result)
    shown = np.asarray(ax.collections[-1].get_offsets())
    table = result.calibration
    assert shown == pytest.approx(np.column_stack([table.stated, table.observed]))
    assert f"{table.error:.3f}" in ax.get_title()
    ax.figure.canvas.draw()


def test_plots_go_into_given_axes(posterior):
    figure, axes = plt.subplots(2, 2)
    calls = (pm.plots.heat, pm.plots.intervals, pm.plots.trace, pm.plots.rank_histograms)
    for plot, ax in zip(calls, axes.ravel(), strict=True):
        assert plot(posterior, ax=ax) is ax
    figure.canvas.draw()


def test_many_items_lose_their_names_but_draw():
    prefs = pm.simulate_rankings(40, 100, 5, rng=1).preferences
    posterior = pm.fit(prefs, "pseudo", alpha=5, n_draws=20, rng=1)
    for plot in (pm.plots.heat, pm.plots.intervals):
        ax = plot(posterior)
        ax.figure.canvas.draw()
        assert "by consensus" in ax.get_xlabel() + ax.get_ylabel()


def test_an_unknown_item_is_named(posterior):
    with pytest.raises(ValueError, match=r"no item is named 'zebra'; the first are \['plain'"):
        pm.plots.trace(posterior, "zebra")


def test_traces_are_a_grid_of_alpha_and_of_items(posterior):
    figure = plots.traces(posterior, ["x", "dear $5"])
    axes = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in axes] == ["alpha", "rank of x", r"rank of dear \$5"]
    shown = axes[1].lines[2].get_ydata()
    assert shown.tolist() == posterior.consensus[2, :, 0, 4].tolist()
    assert len(plots.traces(posterior).axes) == 6
    figure.canvas.draw()


def test_top_k_shows_how_likely_an_item_is_among_the_first(posterior):
    ax = plots.top_k(posterior, k=2, n_items=4)
    probabilities = np.sort(posterior.rank_probabilities()[:, :2].sum(axis=1))[::-1]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(probabilities[:4])
    assert ax.get_title() == "Among the first 2"
    ax.figure.canvas.draw()


def test_memberships_stack_to_one_for_every_user(clustered):
    ax = plots.memberships(clustered)
    assert ax.patches[-1].get_data().values == pytest.approx(np.ones(150))
    first = ax.patches[0].get_data().values
    assert first == pytest.approx(np.sort(first)[::-1], abs=0.5)
    assert first.sum() == pytest.approx(clustered.memberships[:, 0].sum())
    prefs = pm.simulate_rankings(9, 3, 2, rng=1).preferences
    nobody = replace(pm.fit(prefs, "pseudo", alpha=2, rng=1), chain_memberships=np.ones((1, 0, 1)))
    with pytest.raises(ValueError, match="keeps no users"):
        plots.memberships(nobody)


def test_figures_are_saved_with_text_that_can_be_selected(posterior, tmp_path):
    ax = plots.intervals(posterior)
    plots.save(ax, tmp_path / "a.svg")
    assert ">plain</text>" in (tmp_path / "a.svg").read_text()
    plots.save(ax.figure, tmp_path / "a.png")
    assert plt.imread(tmp_path / "a.png").shape[1] == round(200 * ax.figure.get_size_inches()[0])


@pytest.mark.parametrize("draw", [pm.plots.heat, pm.plots.traces])
def test_the_first_figure_leaves_on_what_the_backend_turned_on(posterior, monkeypatch, draw):
    """As in a notebook: its backend, when it is loaded, makes figures show themselves."""
    backend = ModuleType("showing")
    backend.FigureCanvas = FigureCanvasAgg
    monkeypatch.setitem(sys.modules, "showing", backend)
    switch = plt.switch_backend

    def load(name):
        switch(name)
        matplotlib.interactive(True)

    monkeypatch.setattr(plt, "switch_backend", load)
    monkeypatch.setattr(plt, "_backend_mod", None)
    try:
        with plt.rc_context({"backend": "module://showing", "interactive": False}):
            draw(posterior)
            assert plt.isinteractive()
    finally:
        plt.close("all")
        switch("Agg")
    assert not plt.isinteractive()
