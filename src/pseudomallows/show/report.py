"""report: one self-contained HTML page about a fit, for people who are no statisticians.

The page asks nothing of the network and holds no script; its pictures are part of it. They are not
drawn by `plots`, so that names are text of the page: they wrap on a phone, follow light and dark,
and need no font of a plotting library. Here are the figures; the words are in `report.html`.
"""

import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..distributions.mallows import Mallows
from ..files.atomic import write_whole
from ..inference.evaluate import Evaluation
from ..inference.reproduce import call_of
from ..posteriors.posterior import Posterior
from ..posteriors.verdict import is_full, judge
from ..preferences.preferences import Clicks
from ..rankings import check_count, orderings_of
from ..recommendations.recommend import recommend
from .pictures import Heat, calibration, heat

MAX_SHOWN = 40  # items in a picture; the others are in the table of all items
MAX_LISTED = 2000  # items in that table
N_FIRST = 3  # items named as the favourites
N_APART = 5  # items that tell a cluster from the others
N_NEXT = 5  # recommendations of an example
MAX_CLICKED = 12  # clicks of an example that are named
METHODS = {
    "pseudo": "Pseudo-Mallows, a fast approximation",
    "balanced": "balanced Pseudo-Mallows, an approximation whose draws make up for its error",
    "mcmc": "the exact model, by a Markov chain",
    "personal": "an order of each user's own",
}
Figures = dict[str, Any]  # what the template asks for, by name
Facts = list[tuple[str, str]]  # (what, value) rows of a table


def report(
    posterior: Posterior,
    path: str | os.PathLike[str],
    *,
    evaluation: Evaluation | None = None,
    title: str | None = None,
    command: str | None = None,
    n_examples: int = 5,
) -> None:
    """Write one HTML page about a fit: what was learnt, and how far to trust it, in plain words.

    The file opens from disk, asks nothing of the network, and takes its place whole or not at all.
    The same posterior gives the same bytes. Needs Jinja2: ``pip install 'pseudomallows[report]'``.

    Parameters
    ----------
    posterior : Posterior
        From :func:`fit`.
    path : path
        Where to write.
    evaluation : Evaluation, optional
        From :func:`evaluate`, on the same clicks: adds accuracy and calibration.
    title : str, optional
        Heading of the page.
    command : str, optional
        The command that made the fit, for the part on how to repeat it.
    n_examples : int
        Users whose recommendations are shown, if the fit is of clicks.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pseudomallows import fit, simulate_rankings
    >>> posterior = fit(simulate_rankings(20, 5, alpha=3, rng=1).preferences, alpha=3, rng=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "report.html"
    ...     report(posterior, path, title="Five things")
    ...     path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    from .page import render  # here, since Jinja2 is optional and takes its time

    _check(posterior, evaluation)
    n_examples = check_count(n_examples, "n_examples", 0)
    figures = (
        {"title": title, "command": command, "verdict": judge(posterior, evaluation)}
        | _about_data(posterior)
        | _about_fit(posterior)
        | _about_evaluation(evaluation)
        | _about_examples(posterior, n_examples)
    )
    text = render("report.html", **figures)
    with write_whole(path) as stream:
        stream.write(text.encode())


def _check(posterior: object, evaluation: object) -> None:
    """Refuse what does not come from `fit` and `evaluate`, or not from the same items."""
    if not isinstance(posterior, Posterior):
        raise TypeError(f"posterior must come from fit, got {type(posterior).__name__}")
    if evaluation is None:
        return
    if not isinstance(evaluation, Evaluation):
        raise TypeError(f"evaluation must come from evaluate, got {type(evaluation).__name__}")
    if evaluation.posterior.items.tolist() != posterior.items.tolist():
        raise ValueError("evaluation must be of the items of the fit, in its order")


# What went in


def _n_people(posterior: Posterior) -> int:
    """Users who tell something, with their weights, also where they are not kept."""
    return int(posterior.settings.get("n_users", len(posterior.users)))


def _about_data(posterior: Posterior) -> Figures:
    """The data, and where the fit comes from."""
    settings = posterior.settings
    return {
        "kind": "rankings" if posterior.clicks is None else "clicks",
        "is_full": is_full(posterior),
        "n_rows": len(posterior.users),
        "n_users": _n_people(posterior),
        "n_items": posterior.n_items,
        "data_facts": _data_facts(posterior),
        "seed": settings.get("seed"),
        "call": call_of(posterior),
        "origin_facts": [
            ("version of the fit", settings.get("version", "unknown")),
            ("version of this page", __version__),
            ("seed", settings.get("seed")),
        ],
    }


def _data_facts(posterior: Posterior) -> Facts:
    n_rows, n_people = len(posterior.users), _n_people(posterior)
    items = ("items", f"{posterior.n_items:,}")
    if not n_rows:  # a fit of parts
        return [("users, who are not kept with the model", f"{n_people:,}"), items]
    facts = [("users", f"{n_rows:,}"), items]
    if posterior.clicks is not None:
        facts += _click_facts(posterior.clicks)
    if n_people != n_rows:
        facts.append(("people who tell something, with their weights", f"{n_people:,}"))
    return facts


def _click_facts(clicks: Clicks) -> Facts:
    counts, n_clicks = clicks.item_counts(), clicks.n_clicks
    return [
        ("clicks", f"{len(clicks.codes):,}"),
        ("clicks of a user: mean", f"{n_clicks.mean():.1f}"),
        ("clicks of a user: fewest to most", f"{n_clicks.min():,} to {n_clicks.max():,}"),
        ("users who clicked an item: fewest to most", f"{counts.min():,} to {counts.max():,}"),
    ]


# What was learnt


class _Alpha(NamedTuple):
    """Mean of alpha, and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class _Cluster:
    """One cluster; `share`, from `low` to `high`, of the population.

    ``rows`` are those of the summary, best item first; ``means[item]`` is a mean rank; ``apart``
    lists (item, mean rank here, in the others).
    """

    number: int
    share: float
    low: float
    high: float
    n_labelled: int
    alpha: _Alpha
    places_off: float
    rows: list[dict[str, Any]]
    codes: list[int]
    means: NDArray[np.float64]
    heat: Heat
    apart: list[tuple[Any, float, float]]


def _about_fit(posterior: Posterior) -> Figures:
    """The model, its consensus and its clusters."""
    is_personal = posterior.personal is not None
    n_chains, n_draws = posterior.consensus.shape[:2]
    clusters = [] if is_personal else _clusters(posterior)
    method = str(posterior.settings.get("method", "unknown"))
    needs_table = posterior.n_items > MAX_SHOWN or len(clusters) > 1
    return {
        "method": method,
        "method_words": METHODS.get(method, method),
        "is_personal": is_personal,
        "samples_alpha": posterior.settings.get("options", {}).get("samples_alpha", True),
        "n_draws": n_chains * n_draws,
        "n_clusters": posterior.n_clusters,
        "clusters": clusters,
        "mean_membership": _mean_membership(posterior),
        "places_off_by_chance": (posterior.n_items**2 - 1) / (3 * posterior.n_items),
        "fit_facts": _personal_facts(posterior) if is_personal else _fit_facts(posterior),
        "popular": _popular(posterior) if is_personal else [],
        "all_items": _all_items(posterior, clusters) if clusters and needs_table else [],
        "n_first": N_FIRST,
        "max_shown": MAX_SHOWN,
        "max_listed": MAX_LISTED,
    }


def _clusters(posterior: Posterior) -> list[_Cluster]:
    """Every cluster with its figures."""
    n_clusters, ranks = posterior.n_clusters, np.arange(1, posterior.n_items + 1)
    shares = posterior.shares.reshape(-1, n_clusters)
    lows, highs = np.quantile(shares, [0.025, 0.975], axis=0).tolist()
    sizes = np.bincount(posterior.labels, minlength=n_clusters).tolist()
    laws = [posterior.rank_probabilities(number) for number in range(n_clusters)]
    means = np.array([law @ ranks for law in laws])
    mean_shares = posterior.shares.mean(axis=(0, 1))
    clusters = []
    for number, law in enumerate(laws):
        alpha, rows = _alpha(posterior, number), posterior.summary(number)
        codes = orderings_of(posterior.point_consensus("cp", number))
        shown = rows[:MAX_SHOWN]
        last = max(len(shown), *(row["highest"] for row in shown))
        clusters.append(
            _Cluster(
                number,
                float(mean_shares[number]),
                lows[number],
                highs[number],
                sizes[number],
                alpha,
                Mallows(ranks, alpha.mean).expected_distance() / posterior.n_items,
                rows,
                codes.tolist(),
                means[number],
                heat(law[codes[:MAX_SHOWN]], last),
                _apart(posterior, number, means, mean_shares),
            )
        )
    return clusters


def _alpha(posterior: Posterior, cluster: int) -> _Alpha:
    draws = posterior.alpha[:, :, cluster]
    low, high = np.quantile(draws, [0.025, 0.975])
    mean = np.average(draws, weights=posterior.weights)
    return _Alpha(float(mean), float(low), float(high))


def _apart(
    posterior: Posterior,
    number: int,
    means: NDArray[np.float64],
    shares: NDArray[np.float64],
) -> list[tuple[Any, float, float]]:
    """The items that a cluster ranks most above the others: (item, mean rank here, there).

    ``means[cluster, item]`` is a mean rank, ``shares[cluster]`` a share of the users.
    """
    if len(means) == 1:
        return []
    weights = np.maximum(np.delete(shares, number), 1e-12)  # all others may be empty
    theirs = np.average(np.delete(means, number, axis=0), axis=0, weights=weights)
    gaps = theirs - means[number]
    codes = np.argsort(-gaps, kind="stable")[:N_APART].tolist()
    return [
        (posterior.items[code], float(means[number, code]), float(theirs[code]))
        for code in codes
        if gaps[code] > 0
    ]


def _mean_membership(posterior: Posterior) -> float | None:
    """Mean over the users of the probability of their most probable cluster."""
    if not len(posterior.users):
        return None
    return float(posterior.memberships.max(axis=1).mean())


def _all_items(
    posterior: Posterior, clusters: list[_Cluster]
) -> list[tuple[Any, list[dict[str, Any]]]]:
    """(item, its row in each cluster), by mean rank over the population."""
    by_code = [dict(zip(each.codes, each.rows, strict=True)) for each in clusters]
    means = np.sum([each.share * each.means for each in clusters], axis=0)
    codes = np.argsort(means, kind="stable")[:MAX_LISTED].tolist()
    return [(posterior.items[code], [rows[code] for rows in by_code]) for code in codes]


def _popular(posterior: Posterior) -> list[tuple[int, Any, int, float]]:
    """For orders of one's own, what the population clicks: (rank, item, users, bar)."""
    assert posterior.clicks is not None
    codes = orderings_of(posterior.point_consensus("cp"))[:MAX_LISTED].tolist()
    counts = posterior.clicks.item_counts().tolist()
    most = max(*counts, 1)
    return [
        (rank, posterior.items[code], counts[code], counts[code] / most)
        for rank, code in enumerate(codes, start=1)
    ]


def _fit_facts(posterior: Posterior) -> Facts:
    n_chains, n_draws = posterior.consensus.shape[:2]
    return [
        ("method", str(posterior.settings.get("method", "unknown"))),
        ("clusters", f"{posterior.n_clusters}"),
        ("chains", f"{n_chains}"),
        ("draws of each chain", f"{n_draws:,}"),
    ]


def _personal_facts(posterior: Posterior) -> Facts:
    assert posterior.personal is not None
    alphas = posterior.personal.alphas
    facts = [
        ("method", "personal"),
        ("alpha, mean over the users", f"{posterior.alpha.mean():.1f}"),
        ("alpha, least to most", f"{alphas.min():.1f} to {alphas.max():.1f}"),
        (
            "chances corrected by clicks that were hidden",
            "yes" if posterior.personal.corrections else "no",
        ),
    ]
    if posterior.clusters is not None:
        facts.append(("blended with clusters", f"{posterior.clusters.n_clusters}"))
    return facts


# Whether it comes true, and for whom


def _about_evaluation(evaluation: Evaluation | None) -> Figures:
    """Calibration as rows (stated, observed, two standard errors, count) and as a picture."""
    if evaluation is None:
        return {"evaluation": None}
    table = evaluation.calibration
    errors = 2 * np.sqrt(table.observed * (1 - table.observed) / table.counts)
    columns = (table.stated, table.observed, errors, table.counts)
    points = list(zip(*(column.tolist() for column in columns), strict=True))
    return {
        "evaluation": evaluation,
        "has_error": bool(np.isfinite(evaluation.accuracy_error)),
        "points": points,
        "picture": calibration(points),
    }


def _about_examples(posterior: Posterior, n_examples: int) -> Figures:
    """Some users, taken evenly, with their clicks and what comes next."""
    clicks = posterior.clicks
    known = np.flatnonzero(clicks.is_informative) if clicks is not None else np.empty(0)
    if clicks is None or not len(known) or n_examples == 0:
        return {"examples": []}
    places = np.linspace(0, len(known) - 1, min(n_examples, len(known))).round()
    chosen = known[places.astype(np.int64)].tolist()
    found = recommend(posterior, N_NEXT, users=clicks.users[chosen].tolist())
    lists = zip(found.items.tolist(), found.probabilities.tolist(), strict=True)
    examples = [
        _example(posterior, clicks, row, list(zip(*each, strict=True)))
        for row, each in zip(chosen, lists, strict=True)
    ]
    return {"examples": examples, "n_next": found.items.shape[1]}


def _example(
    posterior: Posterior, clicks: Clicks, row: int, found: list[tuple[int, float]]
) -> Figures:
    """The user of a row; `found` are (item, probability), -1 where there is no item left."""
    clicked, label = clicks.clicks_of(row), int(posterior.labels[row])
    return {
        "user": posterior.users[row],
        "clicked": posterior.items[clicked[:MAX_CLICKED]].tolist(),
        "n_more": max(len(clicked) - MAX_CLICKED, 0),
        "label": label,
        "membership": float(posterior.memberships[row, label]),
        "next": [(posterior.items[item], chance) for item, chance in found if item >= 0],
    }
