"""The scripts that redo figures of the paper: each in its smallest setting, and what it shows."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import pseudomallows as pm
from pseudomallows.scores import rank_divergence

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "experiments"))

import best_orders
import best_sigma
import conjecture
import iterative_search
import medians
import paper
import sigma_heat
import user_orders

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = [medians, best_orders, conjecture, iterative_search, sigma_heat, best_sigma, user_orders]
NAMES = [script.__name__ for script in SCRIPTS]
NAMES += ["accuracy_rankings", "accuracy_clicks", "case_study", "scaling"]


@pytest.fixture(scope="module")
def rows_of(tmp_path_factory):
    """Run a script in its smallest setting, once; its rows as read from the table."""
    out, found = tmp_path_factory.mktemp("paper"), {}

    def get(script):
        if script not in found:
            script.main(["--smallest", "--out", str(out)])
            found[script] = paper.read_rows(out / f"{script.__name__}.csv")
            assert (out / f"{script.__name__}.png").stat().st_size > 5000
        return found[script]

    return get


def words_in(path):
    """What a picture says of itself."""
    with Image.open(path) as picture:
        return picture.info["Description"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_a_script_says_what_made_its_table(script, rows_of):
    rows = rows_of(script)
    assert {(row["version"], row["seed"], row["setting"]) for row in rows} == {
        (pm.__version__, paper.SEED, "smallest")
    }


def test_a_picture_says_what_made_it_and_has_few_colours(rows_of, tmp_path):
    paper.save(medians.draw, rows_of(medians), tmp_path / "one.png")
    with Image.open(tmp_path / "one.png") as picture:
        assert picture.mode == "P"
    words = f"smallest setting, seed {paper.SEED}, pseudomallows {pm.__version__}"
    assert words_in(tmp_path / "one.png") == words


def test_the_pictures_of_the_pages_are_in_full_and_of_this_version():
    pictures = (ROOT / "docs" / "figures" / "paper").glob("*.png")
    made_by = {path.stem: words_in(path) for path in pictures}
    assert set(made_by) == set(NAMES)
    assert all(words.startswith("full setting, ") for words in made_by.values())
    minor = pm.__version__.rsplit(".", 1)[0]
    assert all(f" pseudomallows {minor}." in words for words in made_by.values())


def test_cases_come_in_order_and_are_silent_in_a_pipe(capfd):
    assert list(paper.each("ab", [1, 2])) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", NAMES)
def test_a_script_has_a_place_in_make_paper_and_a_page_with_its_figure(name):
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    line = next(line for line in makefile.splitlines() if line.startswith("PAPER :="))
    assert name in line.split()
    page = (ROOT / "docs" / "paper" / f"{name}.md").read_text()
    assert f"figures/paper/{name}.png" in page
    assert f"paper/{name}.md" in (ROOT / "mkdocs.yml").read_text()
    assert f"({name}.md)" in (ROOT / "docs" / "paper" / "index.md").read_text()
    assert (ROOT / "docs" / "figures" / "paper" / f"{name}.png").stat().st_size < 150_000


# Figure 1


def test_medians_go_to_the_own_rank_and_from_the_middle(rows_of):
    rows = rows_of(medians)
    n_items, highest = rows[0]["n_items"], rows[-1]["alpha"]
    for row in rows:
        if row["alpha"] == 0:
            assert row["median"] == 5
        if row["alpha"] == highest:
            assert row["median"] == row["item"]
    needed = [medians.needed_alpha(rows, item) for item in range(1, 6)]
    assert needed == sorted(needed, reverse=True)
    assert needed[0] > needed[3] > needed[4] == 0
    mirror = {(row["alpha"], row["item"]): row["median"] for row in rows}
    for (alpha, item), median in mirror.items():
        assert median + mirror[alpha, n_items + 1 - item] == n_items + 1


def test_a_median_is_that_of_many_draws():
    draws = pm.Mallows(np.arange(1, 10), 2.5).draw(20_001, rng=1)
    np.testing.assert_array_equal(medians.medians(9, 2.5), np.median(draws, axis=0))


# Figure 2


def test_all_orders_have_the_exact_divergences():
    rng = np.random.default_rng(1)
    rankings = pm.Mallows(np.arange(1, 6), 1.5).draw(50, rng)
    law = pm.PseudoMallows(rankings, 1.5)
    costs = best_orders.simulated_costs(5, 50, 1.5, np.random.default_rng(1))
    assert (costs == law.costs).all()
    values = best_orders.divergences_of_orders(-1.5 / 5 * costs)
    exact = law.exact_rank_probabilities()
    for place, order in enumerate(itertools.permutations(range(5))):
        assert best_orders.place_of(np.array(order)) == place
        assert best_orders.order_at(place, 5) == list(order)
        assert values["full"][place] == pytest.approx(law.evidence(order).divergence, abs=1e-9)
        marginal = rank_divergence(law.rank_probabilities(order), exact, floor=1e-300)
        assert values["marginal"][place] == pytest.approx(marginal, abs=1e-9)


def test_v_rankings_are_best_in_the_limit_and_good_on_data(rows_of):
    rows = rows_of(best_orders)
    for row in paper.select(rows, data="limit"):
        assert row["is_v"] == 1
    for row in paper.select(rows, data="simulated", n_users=500):
        assert row["mean_v"] < row["median"]
    many, few = (
        np.mean([row["is_v"] for row in paper.select(rows, data="simulated", n_users=n_users)])
        for n_users in (500, 100)
    )
    assert many == 1.0
    assert many >= few


def test_v_rankings_are_not_best_for_few_users_and_a_large_alpha():
    rows = best_orders.run({"cases": [], "n_sets": 0, "limits": [(5, 10, 4.0)]}, 1)
    assert [row["is_v"] for row in rows] == [0, 0]  # by neither divergence


def test_the_heat_plot_of_best_orders_counts_visits():
    shares = best_orders.places([{"best": "4 2 1 3 5"}, {"best": "5 1 2 3 4"}])
    np.testing.assert_array_equal(shares[2], [0.5, 0.5, 0.0])
    np.testing.assert_array_equal(shares.sum(axis=1), 1)


# The conjecture


def test_all_orders_are_consistent_from_the_alpha_of_figure_1_on(rows_of):
    for row in paper.select(rows_of(conjecture), part="threshold"):
        assert row["all"] == pytest.approx(row["edge_median"], abs=1e-9)
        assert row["others"] <= row["all"] + 1e-9
    nine = paper.select(rows_of(conjecture), part="threshold", n_items=9)[0]
    probabilities = [
        pm.Mallows(np.arange(1, 10), nine["all"] + step).rank_probabilities()[0, 0]
        for step in (-0.01, 0.01)
    ]
    assert probabilities[0] < 0.5 < probabilities[1]
    counts = {
        (r["n_items"], r["alpha"]): r["number"]
        for r in paper.select(rows_of(conjecture), part="count")
    }
    assert counts[5, 0.5] == 4
    assert counts[5, 2.0] == 120


@pytest.mark.parametrize(
    ("n_items", "others", "everything"),
    [
        (3, 0.824, 0.824),
        (5, 0.677, 1.983),
        (7, 0.561, 2.941),
        (9, 0.475, 3.835),
        (12, 0.375, 5.137),
    ],
)
def test_the_borders_of_the_phase_diagram(n_items, others, everything):
    lowest = conjecture.lowest_alpha
    assert lowest(conjecture.others_are_consistent, n_items) == pytest.approx(others, abs=5e-4)
    assert lowest(conjecture.all_are_consistent, n_items) == pytest.approx(everything, abs=5e-4)
    assert (
        abs(lowest(conjecture.all_are_consistent, n_items + 1) - everything) > 0.1
    )  # not of any n


def test_the_best_order_is_a_v_with_many_users(rows_of):
    for row in paper.select(rows_of(conjecture), part="expected", n_users=1000):
        assert 0 < row["lowest"] < 1e-3
        assert row["lowest_v"] == pytest.approx(row["lowest"], rel=1e-9)
        assert row["median"] > 10 * row["lowest"]


def test_divergences_of_the_conjecture_are_those_of_the_package():
    rankings = pm.Mallows(np.arange(1, 6), 1.5).draw(50, rng=1)
    law = pm.PseudoMallows(rankings, 1.5)
    values = conjecture.divergences_of_orders(law.posterior_weights)
    for place, order in list(enumerate(itertools.permutations(range(5))))[::7]:
        assert values[place] == pytest.approx(law.evidence(order).divergence, rel=1e-6)


# Figures 3 and 4


def test_distance_to_the_nearest_v_ranking():
    rng = np.random.default_rng(1)
    for n_items in (6, 7):
        all_v = pm.v_rankings(np.arange(1, n_items + 1))
        for _ in range(20):
            order = rng.permutation(n_items)
            ranking = np.argsort(order) + 1
            nearest = np.abs(all_v - ranking).sum(axis=1).min()
            assert iterative_search.distance_to_v(order) == nearest


def test_the_search_comes_near_the_best_v_ranking(rows_of):
    rows = rows_of(iterative_search)
    starts = paper.select(rows, iteration=0, method="polished")
    best = paper.select(iterative_search.ends(rows, "best"), method="polished")
    assert len(starts) == len(best) == 6
    for start, end in zip(starts, best, strict=True):
        assert end["divergence"] <= start["divergence"]
    close = [end["divergence"] <= 1.1 * end["lowest_v"] + 0.01 for end in best]
    assert np.mean(close) > 0.5
    assert np.median([row["distance"] for row in best]) < 12  # a random order: some 16


def test_the_search_starts_near_a_v_ranking_and_ends_lower_and_near_one(rows_of):
    rows = rows_of(iterative_search)
    for method, n_sets in {"exact": 6, "draws": 1}.items():
        starts = paper.select(rows, iteration=0, method=method)
        last = paper.select(iterative_search.ends(rows), method=method)
        assert len(starts) == len(last) == n_sets
        assert max(row["distance"] for row in starts) <= 2 * 7  # an exchange moves it by 2 at most
        for start, end in zip(starts, last, strict=True):
            assert end["divergence"] < start["divergence"] / 4
        assert np.median([row["distance"] for row in last]) < 8


# Figures 5 and 6


def test_noise_on_the_v_ranking_helps(rows_of):
    rows = rows_of(sigma_heat)
    values = sigma_heat.divergences(rows, 1.0)
    assert values["exact"].max() == 0
    lowest = min(values["2"].mean(), values["4"].mean())
    assert lowest < 0.75 * values["0"].mean()
    assert values["balanced"].mean() < 0.75 * lowest


def test_the_best_sigma_falls_with_alpha_and_users(rows_of):
    best = best_sigma.best_rows(rows_of(best_sigma))
    sigma = {
        key: np.mean([row["sigma"] for row in paper.select(best, n_users=key[0], alpha=key[1])])
        for key in itertools.product((50, 1000), (1.0, 4.0))
    }
    assert sigma[50, 1.0] > sigma[50, 4.0]
    assert sigma[50, 1.0] > sigma[1000, 1.0]
    assert all(row["safe"] for row in paper.select(best, n_users=1000, alpha=4.0))


def test_sigma_auto_gains_most_of_what_the_best_of_the_grid_does(rows_of):
    own = paper.select(best_sigma.best_rows(rows_of(best_sigma)), n_users=50, alpha=1.0)
    auto, plain, least = (paper.column(own, c).mean() for c in ("auto", "plain", "divergence"))
    assert plain - auto > 0.6 * (plain - least)


# Figure 7


def test_uniform_orders_are_best_for_single_users_but_not_exact(rows_of):
    found = user_orders.firsts(rows_of(user_orders))
    divergences = [found[name]["divergence"] for name in ("noise", "uniform", "v", "top_bottom")]
    assert divergences == sorted(divergences)
    assert divergences[1] > 10 * divergences[0]
    assert divergences[2] > 2 * divergences[1]
    full = [found[name]["full_divergence"] for name in ("uniform", "v", "top_bottom")]
    assert full == sorted(full)
    assert full[1] > 1.5 * full[0]
    assert found["v"]["largest_bias"] > 3 * found["uniform"]["largest_bias"]
    assert found["v"]["biased_item"] in (1, 20)
    assert found["top_bottom"]["biased_item"] == 20


# The plumbing


def test_a_table_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "table.csv"
    paper.write_rows([{"a": 1, "b": 0.5}, {"a": 2, "c": "x"}], path, 7, "full")
    expected = paper.read_rows(path)
    shared = {"version": pm.__version__, "seed": 7, "setting": "full"}
    assert expected == [
        shared | {"a": 1, "b": 0.5, "c": None},
        shared | {"a": 2, "b": None, "c": "x"},
    ]

    def broken():
        yield {"a": 1}
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        paper.write_rows(broken(), path, 8, "full")
    assert paper.read_rows(path) == expected
    assert list(path.parent.iterdir()) == [path]


def test_draw_only_draws_from_the_table_as_it_is(tmp_path):
    arguments = ["--smallest", "--out", str(tmp_path)]
    medians.main(arguments)
    table, picture = tmp_path / "medians.csv", tmp_path / "medians.png"
    text, first = table.read_text(), picture.read_bytes()
    picture.unlink()
    medians.main([*arguments, "--draw-only"])
    assert table.read_text() == text
    assert picture.read_bytes() == first


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_figure_has_the_format_that_was_asked_for(ending, start, tmp_path):
    arguments = ["--smallest", "--out", str(tmp_path), "--format", ending]
    medians.main(arguments)
    assert {path.name for path in tmp_path.iterdir()} == {"medians.csv", f"medians.{ending}"}
    picture = tmp_path / f"medians.{ending}"
    first = picture.read_bytes()
    assert first.startswith(start)
    medians.main([*arguments, "--draw-only"])
    assert picture.read_bytes() == first  # the same table, the same file
    if ending == "svg":
        assert ">median rank</text>" in first.decode()


def test_an_unknown_format_is_refused(capsys):
    with pytest.raises(SystemExit):
        paper.parse("words", ["--format", "bmp"])
    assert "svg" in capsys.readouterr().err


def test_a_matrix_survives_the_way_through_rows():
    table = np.arange(6.0).reshape(2, 3)
    rows = paper.table_rows(table, ("item", "rank"), "p", law="x")
    assert rows[0] == {"law": "x", "item": 1, "rank": 1, "p": 0.0}
    np.testing.assert_array_equal(paper.table_of(rows, ("item", "rank"), "p"), table)


def test_full_and_smallest_exclude_each_other():
    with pytest.raises(SystemExit):
        paper.parse("words", ["--full", "--smallest"])
    assert paper.parse("words", ["--full"]).setting == "full"
    assert paper.parse("words", []).setting == "reduced"
