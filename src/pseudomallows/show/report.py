"""report: one self-contained HTML page about a fit, for people who are no statisticians.

The page asks nothing of the network and holds no script; its pictures are part of it. They are not
drawn by `plots`, so that names are text of the page: they wrap on a phone, follow light and dark,
and need no font of a plotting library. Here are the figures; the words are in `report.html`.
"""

import os
from typing import Any

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
from .pictures import calibration, heat

ENDS = (0.025, 0.975)  # of the 95 % intervals
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
    text = render(
        "report.html",
        **_figures(posterior, evaluation, n_examples),
        title=title,
        command=command,
        version=__version__,
        n_first=N_FIRST,
        max_shown=MAX_SHOWN,
        max_listed=MAX_LISTED,
    )
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


def _figures(posterior: Posterior, evaluation: Evaluation | None, n_examples: int) -> Figures:
    """What the template asks for, by name."""
    is_personal, settings = posterior.personal is not None, posterior.settings
    clusters = [] if is_personal else _clusters(posterior)
    method = str(settings.get("method", "unknown"))
    points = [] if evaluation is None else _points(evaluation)
    return {
        "fit": posterior,
        "settings": settings,
        "kind": "rankings" if posterior.clicks is None else "clicks",
        "is_full": is_full(posterior),
        "is_personal": is_personal,
        "n_users": int(settings.get("n_users", len(posterior.users))),
        "method": method,
        "method_words": METHODS.get(method, method),
        "data_facts": _data_facts(posterior),
        "verdict": judge(posterior, evaluation),
        "clusters": clusters,
        "all_items": _all_items(posterior, clusters) if clusters else [],
        "popular": _popular(posterior) if is_personal else [],
        "evaluation": evaluation,
        "points": points,
        "picture": calibration(points) if points else None,
        "examples": _examples(posterior, n_examples) if posterior.clicks is not None else [],
        "call": call_of(posterior),
    }


def _data_facts(posterior: Posterior) -> list[tuple[str, str]]:
    """The data in numbers: (what, value) each."""
    n_rows, clicks = len(posterior.users), posterior.clicks
    n_people = int(posterior.settings.get("n_users", n_rows))
    items = ("items", f"{posterior.n_items:,}")
    if not n_rows:  # a fit of parts
        return [("users, who are not kept with the model", f"{n_people:,}"), items]
    facts = [("users", f"{n_rows:,}"), items]
    if clicks is not None:
        counts, n_clicks = clicks.item_counts(), clicks.n_clicks
        facts += [
            ("clicks", f"{len(clicks.codes):,}"),
            ("clicks of a user: mean", f"{n_clicks.mean():.1f}"),
            ("clicks of a user: fewest to most", f"{n_clicks.min():,} to {n_clicks.max():,}"),
            ("users who clicked an item: fewest to most", f"{counts.min():,} to {counts.max():,}"),
        ]
    if n_people != n_rows:
        facts.append(("people who tell something, with their weights", f"{n_people:,}"))
    return facts


def _clusters(posterior: Posterior) -> list[Figures]:
    """Every cluster with its figures; ``means[item]`` is a mean rank."""
    n_clusters, ranks = posterior.n_clusters, np.arange(1, posterior.n_items + 1)
    shares = posterior.shares.mean(axis=(0, 1))
    lows, highs = np.quantile(posterior.shares, ENDS, axis=(0, 1))
    sizes = np.bincount(posterior.labels, minlength=n_clusters)
    laws = [posterior.rank_probabilities(number) for number in range(n_clusters)]
    means = np.array([law @ ranks for law in laws])
    clusters = []
    for number, law in enumerate(laws):
        rows = posterior.summary(number)
        codes = orderings_of(posterior.point_consensus("cp", number))
        last = max(min(MAX_SHOWN, len(rows)), *(row["highest"] for row in rows[:MAX_SHOWN]))
        picture = heat(law[codes[:MAX_SHOWN]], last)
        clusters.append(
            {
                "number": number,
                "share": float(shares[number]),
                "low": float(lows[number]),
                "high": float(highs[number]),
                "n_labelled": int(sizes[number]),
                "rows": rows,
                "codes": codes.tolist(),
                "means": means[number],
                "heat": picture,
                "shown": list(zip(rows[:MAX_SHOWN], picture.rows, strict=True)),
                "apart": _apart(posterior, number, means, shares) if n_clusters > 1 else [],
            }
            | _agreement(posterior, number)
        )
    return clusters


def _agreement(posterior: Posterior, cluster: int) -> Figures:
    """Mean of alpha, its 95 % interval, and how far ranks are from the consensus with it."""
    draws = posterior.alpha[:, :, cluster]
    alpha = float(np.average(draws, weights=posterior.weights))
    law = Mallows(np.arange(1, posterior.n_items + 1), alpha)
    low, high = np.quantile(draws, ENDS).tolist()
    off = law.expected_distance() / posterior.n_items
    return {"alpha": alpha, "alpha_low": low, "alpha_high": high, "places_off": off}


def _apart(
    posterior: Posterior,
    number: int,
    means: NDArray[np.float64],
    shares: NDArray[np.float64],
) -> list[tuple[Any, float, float]]:
    """The items that a cluster ranks most above the others: (item, mean rank here, there).

    ``means[cluster, item]`` is a mean rank, ``shares[cluster]`` a share of the users.
    """
    weights = np.maximum(np.delete(shares, number), 1e-12)  # all others may be empty
    theirs = np.average(np.delete(means, number, axis=0), axis=0, weights=weights)
    gaps = theirs - means[number]
    return [
        (posterior.items[code], float(means[number, code]), float(theirs[code]))
        for code in np.argsort(-gaps, kind="stable")[:N_APART]
        if gaps[code] > 0
    ]


def _all_items(posterior: Posterior, clusters: list[Figures]) -> list[tuple[Any, list[Figures]]]:
    """(item, its row in each cluster), by mean rank over the population."""
    by_code = [dict(zip(each["codes"], each["rows"], strict=True)) for each in clusters]
    means = np.sum([each["share"] * each["means"] for each in clusters], axis=0)
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


def _points(evaluation: Evaluation) -> list[tuple[float, float, float, int]]:
    """The calibration as rows (stated, observed, two standard errors, count)."""
    table = evaluation.calibration
    errors = 2 * np.sqrt(table.observed * (1 - table.observed) / table.counts)
    columns = (table.stated, table.observed, errors, table.counts)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _examples(posterior: Posterior, n_examples: int) -> list[Figures]:
    """Some users, taken evenly, with their clicks and what comes next."""
    assert posterior.clicks is not None
    known = np.flatnonzero(posterior.clicks.is_informative)
    n_shown = min(n_examples, len(known))
    if n_shown == 0:
        return []
    places = np.linspace(0, len(known) - 1, n_shown).round().astype(np.int64)
    rows = known[places].tolist()
    found = recommend(posterior, N_NEXT, users=posterior.users[rows].tolist())
    return [
        _example(posterior, posterior.clicks, row, items, chances)
        for row, items, chances in zip(
            rows, found.items.tolist(), found.probabilities.tolist(), strict=True
        )
    ]


def _example(
    posterior: Posterior, clicks: Clicks, row: int, items: list[int], chances: list[float]
) -> Figures:
    """The user of a row; an item of -1 means that none is left to recommend."""
    clicked, label = clicks.clicks_of(row), int(posterior.labels[row])
    next_items = zip(items, chances, strict=True)
    return {
        "user": posterior.users[row],
        "clicked": posterior.items[clicked[:MAX_CLICKED]].tolist(),
        "n_more": max(len(clicked) - MAX_CLICKED, 0),
        "label": label,
        "membership": float(posterior.memberships[row, label]),
        "n_next": len(items),
        "next": [(posterior.items[item], chance) for item, chance in next_items if item >= 0],
    }
