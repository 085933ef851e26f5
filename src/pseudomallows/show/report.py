"""report: one self-contained HTML page about a fit, for people who are not statisticians.

The page asks nothing of the network and holds no script; its pictures are part of it. They are not
drawn by `plots`, so that names are text of the page: they wrap on a phone, follow light and dark,
and need no font of a plotting library. Here are the figures; the words are in `report.html`.
"""

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..data.atomic import write_whole
from ..distances.mallows import Mallows
from ..evaluation.figures import Evaluation
from ..markup import reliability
from ..personal.personal_fit import Fit, PersonalFit, check_fit
from ..posterior.posterior import Posterior
from ..rankings import check_count, orderings_of
from ..sampling.options import METHODS
from ..sampling.reproduce import call_of
from .examples import Figures, make_examples, mean_probabilities

ENDS = (0.025, 0.975)  # of the 95 % intervals
MAX_SHOWN = 40  # items in a picture; the others are in the table of all items
N_OPEN = 5  # of these, seen at once of each cluster
MAX_CELLS = 60  # of a row of ranks: more are too narrow to see on a phone
MAX_LISTED = 2000  # items in that table, some 200 KB


def report(
    posterior: Fit,
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
    posterior : Posterior or PersonalFit
        From :func:`fit`.
    path : path
        Where to write.
    evaluation : Evaluation, optional
        From :func:`evaluate`, on the same clicks: adds accuracy and calibration. By default what
        `Evaluation.keep_in` has kept in the fit.
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
    for name, words in (("title", title), ("command", command)):
        if words is not None and not isinstance(words, str):
            raise TypeError(f"{name} must be text, got {words!r}")
    text = render(
        "report.html",
        **_figures(posterior, evaluation, n_examples),
        title=title,
        command=command,
        version=__version__,
        n_first=2,
        max_shown=MAX_SHOWN,
        max_listed=MAX_LISTED,
    )
    with write_whole(path) as stream:
        stream.write(text.encode())


def _check(posterior: Fit, evaluation: object) -> None:
    """Refuse what does not come from `fit` and `evaluate`, or not from the same items."""
    check_fit(posterior)
    if evaluation is None:
        return
    if not isinstance(evaluation, Evaluation):
        raise TypeError(f"evaluation must come from evaluate, got {type(evaluation).__name__}")
    if evaluation.posterior.items.tolist() != posterior.items.tolist():
        raise ValueError("evaluation must be of the items of the fit, in its order")


def _figures(posterior: Fit, evaluation: Evaluation | None, n_examples: int) -> Figures:
    """What the template asks for, by name."""
    settings = posterior.settings
    method = str(settings.get("method", "unknown"))
    kept = settings.get("evaluation") if evaluation is None else evaluation.figures()
    names = ("stated", "observed", "error", "count")
    points = [tuple(row[name] for name in names) for row in (kept or {}).get("calibration", [])]
    is_new = evaluation is not None and isinstance(posterior, PersonalFit)
    return {
        "fit": posterior,
        "settings": settings,
        "kind": posterior.kind,
        "is_full": bool(settings.get("is_full", False)),
        "n_users": int(settings.get("n_users", len(posterior.users))),
        "method": method,
        "method_words": METHODS.get(method, method),
        "data_facts": _data_facts(posterior),
        "verdict": evaluation.verdict if evaluation and is_new else posterior.verdict(),
        "evaluation": kept,
        "points": points,
        "picture": reliability(points, "23rem") if points else None,
        "examples": make_examples(posterior, n_examples),
        "call": call_of(posterior),
        **(_personal(posterior) if isinstance(posterior, PersonalFit) else _consensus(posterior)),
    }


def _data_facts(posterior: Fit) -> list[tuple[str, str]]:
    """The data in numbers: (what, value) each."""
    n_rows = len(posterior.users)
    n_people = int(posterior.settings.get("n_users", n_rows))
    users = ("users", n_rows) if n_rows else ("users, who are not kept with the model", n_people)
    facts: dict[str, int | float] = dict([users, ("items", posterior.n_items)])
    if n_rows and posterior.data is not None:
        facts |= posterior.data.facts()
        facts.pop("people", None)  # also those of whom nothing is known
    if n_rows and n_people != n_rows:
        facts["people who tell something, with their weights"] = n_people
    return [
        (what, f"{value:,}" if isinstance(value, int) else f"{round(value, 3):,}")
        for what, value in facts.items()
    ]


def _personal(fit: PersonalFit) -> Figures:
    """What a personal fit shows."""
    parts = fit.settings.get("options", {}).get("parts", [])
    population = getattr(fit, "population", None)  # the consensus of all, if it was asked for
    shared = None if population is None else _clusters(population)[0] | {"n_open": N_OPEN}
    shown = {"popular": _popular(fit), "parts": parts, "probabilities": mean_probabilities(fit)}
    shown["shared"] = shared
    shown["calibration"] = f"Its probabilities are about {fit.question}."
    return {"is_personal": True, "clusters": [], "all_items": [], "pairs": None, **shown}


def _consensus(posterior: Posterior) -> Figures:
    """What a fit with a consensus, or several, shows."""
    clusters = _clusters(posterior)
    return {
        "is_personal": False,
        "clusters": clusters,
        "firsts": _firsts(clusters[0]) if posterior.alpha.any() else [],
        "all_items": _all_items(posterior, clusters),
        "pairs": _pairs(posterior, clusters[0]) if posterior.kind == "pairs" else None,
        "popular": [],
    }


def _firsts(cluster: Figures) -> list[Any]:
    """The items that may come first, by their intervals; none if they are too many to name."""
    firsts = [row["item"] for row in cluster["rows"] if row["lowest"] == 1]
    return firsts if len(firsts) <= 3 else []


def _pairs(posterior: Posterior, cluster: Figures) -> Figures:
    """Who comes before whom, for the first items of the largest cluster."""
    codes = orderings_of(posterior.point_consensus())[:15]
    table = posterior.pair_probabilities()[np.ix_(codes, codes)]
    rows = zip(cluster["rows"], pair_cells(table), strict=False)
    return {"rows": list(rows), "n_shown": len(codes)}


def _clusters(posterior: Posterior) -> list[Figures]:
    """Every cluster with its figures; ``means[item]`` is a mean rank."""
    n_clusters = posterior.n_clusters
    shares = posterior.shares.mean(axis=(0, 1))
    lows, highs = np.quantile(posterior.shares, ENDS, axis=(0, 1))
    sizes = np.bincount(posterior.labels, minlength=n_clusters)
    means = np.array([posterior.mean_ranks(number) for number in range(n_clusters)])
    clusters = []
    for number in range(n_clusters):
        codes = orderings_of(posterior.point_consensus(cluster=number))
        row_of = dict(zip(codes.tolist(), posterior.summary(number), strict=True))
        codes = codes[:MAX_SHOWN]
        rows = [row_of[code] for code in codes.tolist()]
        last = max(len(rows), *(row["highest"] for row in rows))
        picture = heat(posterior.shares_of_ranks(codes, last, number), last)
        clusters.append(
            {
                "number": number + 1,
                "share": float(shares[number]),
                "low": float(lows[number]),
                "high": float(highs[number]),
                "n_labelled": int(sizes[number]),
                "members": _members(posterior, number) if n_clusters > 1 else [],
                "rows": rows,
                "row_of": row_of,
                "means": means[number],
                "heat": picture,
                "shown": list(zip(rows, picture.rows, strict=True)),
                "n_open": 12 if n_clusters == 1 else N_OPEN,
                "apart": _apart(posterior, number, means, shares) if n_clusters > 1 else [],
            }
            | _agreement(posterior, number)
        )
    return clusters


def _members(posterior: Posterior, number: int) -> list[tuple[Any, float]]:
    """Who is in a group, the surest first: (name, probability)."""
    if not len(posterior.users):
        return []
    probabilities = posterior.memberships[:, number]
    rows = np.flatnonzero(posterior.labels == number)
    rows = rows[np.argsort(-probabilities[rows], kind="stable")][:MAX_LISTED]
    return [(posterior.users[row], float(probabilities[row])) for row in rows.tolist()]


def _agreement(posterior: Posterior, cluster: int) -> Figures:
    """Mean of alpha, its 95 % interval, and how far ranks are from the consensus with it."""
    draws = posterior.alpha[:, :, cluster]
    alpha = float(np.average(draws, weights=posterior.weights))
    low, high = np.quantile(draws, ENDS).tolist()
    center = np.arange(1, posterior.n_items + 1)
    if posterior.settings.get("distance", "footrule") == "footrule":
        off = Mallows(center, alpha).expected_distance() / posterior.n_items
    else:  # of some draws: sums over so many items hardly vary
        law = Mallows(center, alpha, posterior.settings["distance"])
        n_draws = max(3, 10**5 // posterior.n_items)
        off = float(np.abs(law.draw(n_draws, rng=0) - center).mean())
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
        for code in np.argsort(-gaps, kind="stable")[:3]
        if gaps[code] > 0
    ]


def _all_items(posterior: Posterior, clusters: list[Figures]) -> list[tuple[Any, list[Figures]]]:
    """(item, its row in each cluster), by mean rank over the population."""
    means = np.sum([each["share"] * each["means"] for each in clusters], axis=0)
    codes = np.argsort(means, kind="stable")[:MAX_LISTED].tolist()
    return [(posterior.items[code], [each["row_of"][code] for each in clusters]) for code in codes]


def _popular(fit: PersonalFit) -> list[tuple[int, Any, int, float]]:
    """For orders of one's own, what the population clicks: (rank, item, users, bar)."""
    assert fit.clicks is not None
    counts = fit.clicks.item_counts().tolist()
    most = max(*counts, 1)
    return [
        (rank, fit.items[code], counts[code], counts[code] / most)
        for rank, code in enumerate(fit.ties[:MAX_LISTED].tolist(), start=1)
    ]


# Where the marks of the pictures go; the template draws them


class Heat(NamedTuple):
    """Rank probabilities in rows of cells, one row an item.

    ``rows[item]`` lists the cells that are seen as (place, strength), a cell is `cell` wide;
    places and widths are shares of a row, which holds `width` ranks, `size` a cell. `marks` are
    the numbers over the rows: (rank, place, anchor). `strongest` is the probability of strength 1.
    """

    rows: list[list[tuple[float, float]]]
    cell: float
    width: int
    size: int
    marks: list[tuple[int, float, str]]
    strongest: float


def heat(probabilities: NDArray[np.float64], last: int) -> Heat:
    """Cells of ``probabilities[item, rank - 1]``, for the ranks 1 to `last`."""
    cells, size = in_cells(probabilities, last)
    strongest, n_cells = float(cells.max()), cells.shape[1]
    strengths = np.sqrt(cells / strongest)  # so that small probabilities are seen
    is_seen = cells >= 0.002 * strongest  # a fainter cell is white on any screen
    rows = [
        [(cell / n_cells, float(row[cell])) for cell in np.flatnonzero(seen).tolist()]
        for row, seen in zip(strengths, is_seen, strict=True)
    ]
    width = n_cells * size
    return Heat(rows, 1 / n_cells, width, size, _marks(last, width), strongest)


def in_cells(probabilities: NDArray[np.float64], last: int) -> tuple[NDArray[np.float64], int]:
    """``probabilities[item, cell]`` of the ranks 1 to `last`, at most `MAX_CELLS` cells, and the
    ranks of a cell; the last cell may be short.

    >>> in_cells(np.array([[0.5, 0.3, 0.2]]), 3)
    (array([[0.5, 0.3, 0.2]]), 1)
    """
    size = -(-last // MAX_CELLS)
    starts = np.arange(0, last, size)
    return np.add.reduceat(probabilities[:, :last], starts, axis=1), size


def _marks(last: int, width: int) -> list[tuple[int, float, str]]:
    """The numbers over rows of `width` ranks, of which those up to `last` are there."""
    if last <= 10:
        return [(rank, (rank - 0.5) / width, "middle") for rank in range(1, last + 1)]
    middle = round(last / 2)
    return [(1, 0.0, "start"), (middle, (middle - 0.5) / width, "middle"), (last, 1.0, "end")]


def pair_cells(table: NDArray[np.float64]) -> list[list[tuple[float, float] | None]]:
    """``cells[row][column]`` is (probability that the row comes first, how far it is from a
    toss-up, 0 to 1); None for an item and itself.

    >>> pair_cells(np.array([[0.5, 0.75], [0.25, 0.5]]))
    [[None, (0.75, 0.5)], [(0.25, 0.5), None]]
    """
    return [
        [
            None if row == column else (probability, abs(2 * probability - 1))
            for column, probability in enumerate(probabilities)
        ]
        for row, probabilities in enumerate(table.tolist())
    ]
