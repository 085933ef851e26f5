"""report: one self-contained HTML page about a fit, for people who are no statisticians.

The page asks nothing of the network and holds no script; its pictures are part of it. It is drawn
here, and not by `plots`, so that names are text of the page: they wrap on a phone, follow light and
dark, and need no font of a plotting library.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..distributions.mallows import Mallows
from ..files.atomic import write_whole
from ..inference.evaluate import Evaluation
from ..inference.reproduce import call_of
from ..posteriors.personal import Fit, PersonalFit, check_fit
from ..posteriors.posterior import Posterior, cp_ordering, mean_ranks_of, summary_of
from ..posteriors.verdict import Verdict, judge
from ..preferences.preferences import Clicks
from ..rankings import check_count
from ..recommendations.recommend import recommend
from .html import (
    Html,
    bar,
    in_cells,
    join,
    name,
    page,
    percent,
    plain,
    rank_axis,
    scatter,
    strip,
    table,
    tag,
)

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
    "personal": "personal: an order of each user's own",
}


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
    The same posterior gives the same bytes.

    Parameters
    ----------
    posterior : Posterior or PersonalFit
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
    check_fit(posterior)
    if evaluation is not None and not isinstance(evaluation, Evaluation):
        raise TypeError(f"evaluation must come from evaluate, got {type(evaluation).__name__}")
    if evaluation is not None and evaluation.posterior.items.tolist() != posterior.items.tolist():
        raise ValueError("evaluation must be of the items of the fit, in its order")
    n_examples = check_count(n_examples, "n_examples", 0)
    fitted = _Fitted(posterior)
    heading = plain(title) if title else f"What {fitted.n_users:,} users prefer"
    text = page(heading, _body(fitted, heading, evaluation, command, n_examples))
    with write_whole(path) as stream:
        stream.write(text.encode())


@dataclass(frozen=True)
class _Group:
    """One cluster: its items, best first, as codes and as rows of the summary."""

    number: int
    share: float
    codes: NDArray[np.int64]
    rows: list[dict[str, Any]]
    probabilities: NDArray[np.float64]

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean rank of each item."""
        return mean_ranks_of(self.probabilities)


class _Fitted:
    """A fit, and what several parts of the page ask of it."""

    def __init__(self, posterior: Fit):
        self.fit = posterior
        self.settings, self.options = posterior.settings, posterior.settings.get("options", {})
        self.method = str(self.settings.get("method", "unknown"))
        self.n_items, self.n_clusters = posterior.n_items, posterior.n_clusters
        self.n_users = int(self.settings.get("n_users", len(posterior.users)))
        self.is_personal = isinstance(posterior, PersonalFit)
        self.is_full = bool(self.settings.get("is_full", False))

    @property
    def posterior(self) -> Posterior:
        """The fit, where it is known to have draws."""
        assert isinstance(self.fit, Posterior)
        return self.fit

    @property
    def personal(self) -> PersonalFit:
        """The fit, where it is known to be personal."""
        assert isinstance(self.fit, PersonalFit)
        return self.fit

    @cached_property
    def groups(self) -> list[_Group]:
        posterior, found = self.posterior, []
        for number, share in enumerate(posterior.shares.mean(axis=(0, 1))):
            law = posterior.rank_probabilities(number)
            codes, rows = cp_ordering(law), summary_of(law, posterior.items)
            found.append(_Group(number, float(share), codes, rows, law))
        return found

    def alpha(self, cluster: int) -> tuple[float, float, float]:
        """Mean of alpha, and the ends of its 95 % interval."""
        draws = self.posterior.alpha[:, :, cluster]
        low, high = np.quantile(draws, [0.025, 0.975])
        return float(np.average(draws, weights=self.posterior.weights)), float(low), float(high)


def _body(
    fitted: _Fitted,
    heading: str,
    evaluation: Evaluation | None,
    command: str | None,
    n_examples: int,
) -> Html:
    error = None if evaluation is None else evaluation.calibration.error
    verdict = judge(fitted.fit, error)
    parts = [
        ("data", "What went in", _data(fitted)),
        ("model", "The model", _model(fitted)),
        ("trust", "Can the fit be trusted?", _trust(fitted, verdict)),
        ("order", "What the users prefer", _order(fitted)),
        ("clusters", "The clusters", _clusters(fitted)),
        ("check", "Do the chances come true?", _check(fitted, evaluation)),
        ("examples", "Examples", _examples(fitted, n_examples)),
        ("again", "How to make this again", _again(fitted, command)),
    ]
    shown = [(key, words, content) for key, words, content in parts if content]
    links = [tag("li", tag("a", words, href=f"#{key}")) for key, words, _ in shown]
    sections = [tag("section", tag("h2", words), content, id=key) for key, words, content in shown]
    return join(
        [
            tag("header", tag("h1", heading), _in_short(fitted, verdict, evaluation)),
            tag("nav", tag("ul", *links), aria_label="Parts of the page"),
            tag("main", *sections),
        ],
        "\n",
    )


def _in_short(fitted: _Fitted, verdict: Verdict, evaluation: Evaluation | None) -> Html:
    lines: list[Html] = []
    if fitted.is_personal:
        best = _and([name(row["item"]) for row in fitted.personal.most_clicked()[:N_FIRST]])
        lines.append(join(["Clicked most: ", best, ". Each user has an order of their own."]))
    for group in [] if fitted.is_personal else fitted.groups:
        best = _and([name(row["item"]) for row in group.rows[:N_FIRST]])
        if fitted.n_clusters == 1:
            lines.append(join(["The favourites: ", best, "."]))
        else:
            who = f"Cluster {group.number} ({percent(group.share)} of the users) puts "
            lines.append(join([who, best, " first."]))
    lines.append(join(["Can the fit be trusted? ", _badge(verdict), " ", verdict.words]))
    if evaluation is not None:
        lines.append(join([_accuracy(evaluation)]))
    return tag("div", *(tag("p", line) for line in lines), class_="card")


def _data(fitted: _Fitted) -> Html:
    clicks, n_rows = fitted.fit.clicks, len(fitted.fit.users)
    facts = [("users", f"{n_rows:,}"), ("items", f"{fitted.n_items:,}")]
    if not n_rows:  # a fit of parts
        facts[0] = ("users, who are not kept with the model", f"{fitted.n_users:,}")
    if clicks is None:
        what = "a ranking of all items" if fitted.is_full else "a ranking of some of the items"
        words = f"Each user gave {what}. Rank 1 is the best."
        if not fitted.is_full:
            words += " What a user did not rank is not taken as bad: it is unknown."
    else:
        words = (
            "Each user clicked some items. A click says that the user prefers the item to those "
            "without a click; it does not say which click is the favourite."
        )
        facts += _click_facts(clicks) if n_rows else []
    if n_rows and fitted.n_users != n_rows:
        facts.append(("people who tell something, with their weights", f"{fitted.n_users:,}"))
    return join([tag("p", words), _facts("The data in numbers", facts)])


def _click_facts(clicks: Clicks) -> list[tuple[str, str]]:
    counts, n_clicks = clicks.item_counts(), clicks.n_clicks
    return [
        ("clicks", f"{len(clicks.codes):,}"),
        ("clicks of a user: mean", f"{n_clicks.mean():.1f}"),
        ("clicks of a user: fewest to most", f"{n_clicks.min():,} to {n_clicks.max():,}"),
        ("users who clicked an item: fewest to most", f"{counts.min():,} to {counts.max():,}"),
    ]


def _model(fitted: _Fitted) -> Html:
    if fitted.is_personal:
        return _personal_model(fitted)
    posterior = fitted.posterior
    groups = (
        "one order that they share, the consensus"
        if fitted.n_clusters == 1
        else f"the order of their group. There are {fitted.n_clusters} groups, or clusters, each "
        "with a consensus of its own"
    )
    n_chains, n_draws = posterior.consensus.shape[:2]
    words = [
        f"The model (Mallows) says that the users have orders of the items near {groups}. How near "
        "is a number, alpha: at 0 all orders are equally likely, and the larger it is, the more "
        "the users agree.",
        f"Method: {METHODS.get(fitted.method, fitted.method)}. The consensus was drawn "
        f"{n_chains * n_draws:,} times, each draw a consensus that the data allow; where the draws "
        "differ, the data leave it open.",
    ]
    facts = [("method", fitted.method), ("clusters", f"{fitted.n_clusters}")]
    facts += [("chains", f"{n_chains}"), ("draws of each chain", f"{n_draws:,}")]
    rows = [_alpha_row(fitted, cluster) for cluster in range(fitted.n_clusters)]
    head = ["cluster", "alpha", "95\u00a0% interval", "places off"]
    if fitted.n_clusters == 1:
        head[0] = "of"
    kinds = ["", "number", "number", "number"]
    chance = (fitted.n_items**2 - 1) / (3 * fitted.n_items)
    caption = (
        "How much the users agree. Places off: how far a user's rank of an item is from the "
        f"consensus, on average; users who ranked by chance would be {chance:.1f} places off."
    )
    return join(
        [
            *(tag("p", line) for line in words),
            tag(
                "div",
                table(head, rows, caption, kinds=kinds),
                _facts("The fit in numbers", facts),
                class_="pair",
            ),
        ]
    )


def _alpha_row(fitted: _Fitted, cluster: int) -> list[str]:
    mean, low, high = fitted.alpha(cluster)
    law = Mallows(np.arange(1, fitted.n_items + 1), mean)
    how = "estimated" if fitted.options.get("samples_alpha", True) else "given"
    interval = how if low == high else f"{low:.2f} to {high:.2f}"
    off = law.expected_distance() / fitted.n_items
    who = "all users" if fitted.n_clusters == 1 else f"{cluster}"
    return [who, f"{mean:.2f}", interval, f"{off:.1f}"]


def _personal_model(fitted: _Fitted) -> Html:
    personal = fitted.personal
    alphas = personal.alphas
    words = (
        "Each user has an order of their own: what other users clicked along with the user's "
        "clicks comes first. How closely users keep to it differs from user to user, and is learnt "
        "as well (alpha: 0 is pure chance)."
    )
    facts = [("method", "personal")]
    facts.append(("alpha, mean over the users", f"{personal.mean_alpha:.1f}"))
    facts.append(("alpha, least to most", f"{alphas.min():.1f} to {alphas.max():.1f}"))
    corrected = "yes" if personal.corrections else "no"
    facts.append(("chances corrected by clicks that were hidden", corrected))
    if personal.clusters is not None:
        facts.append(("blended with clusters", f"{personal.clusters.n_clusters}"))
    return join([tag("p", words), _facts("The fit in numbers", facts)])


def _badge(verdict: Verdict) -> Html:
    kind = {"yes": "yes", "no": "no"}.get(verdict.answer, "care")
    return tag("span", verdict.answer, class_=f"answer {kind}")


def _trust(fitted: _Fitted, verdict: Verdict) -> Html:
    parts = [tag("p", _badge(verdict), " ", verdict.words)]
    if verdict.advice:
        parts.append(tag("p", tag("strong", "What to do: "), verdict.advice))
    if fitted.method == "pseudo":
        note = "This method is approximate; method='mcmc' gives the exact answer, more slowly."
        parts.append(tag("p", note))
    if verdict.checks:
        head, kinds = ["check", "found", "wanted"], ["", "number", "number"]
        parts.append(tag("p", verdict.note))
        parts.append(table(head, verdict.checks, "The checks in numbers", kinds=kinds))
    return join(parts)


def _order(fitted: _Fitted) -> Html:
    if fitted.is_personal:
        return _popularity(fitted)
    words = [
        "The items in the order of the consensus, the best first. The stronger the colour of a "
        "cell, the likelier that rank. The line below is the 95\u00a0% interval: the item's rank "
        "in the consensus lies there with a probability of 95\u00a0%. The dot is the mean rank.",
    ]
    if fitted.n_items > MAX_SHOWN:
        words.append(
            f"The best {MAX_SHOWN} of {fitted.n_items:,} items are shown; the table below has all."
        )
    pictures = [_heat(fitted, group) for group in fitted.groups]
    if fitted.n_clusters > 1:
        pictures = [tag("div", *pictures, class_="pair")]
    parts = [*(tag("p", line) for line in words), *pictures]
    if fitted.n_items > MAX_SHOWN or fitted.n_clusters > 1:
        parts.append(_all_items(fitted))
    return join(parts)


def _heat(fitted: _Fitted, group: _Group) -> Html:
    """The best items of a cluster: a row of cells each, one a rank, with interval and mean."""
    n_shown = min(MAX_SHOWN, fitted.n_items)
    rows, law = group.rows[:n_shown], group.probabilities[group.codes[:n_shown]]
    last = max(n_shown, *(row["highest"] for row in rows))
    cells, size = in_cells(law, last)
    strongest, width = float(cells.max()), cells.shape[1] * size
    lines = [
        [
            row["rank"],
            name(row["item"], 24),
            strip(
                chances,
                strongest,
                ((row["lowest"] - 1) / width, row["highest"] / width),
                (row["mean"] - 0.5) / width,
                f"mean rank {row['mean']:.1f}, 95\u00a0% interval {_interval(row)}",
            ),
            _interval(row),
            f"{row['mean']:.1f}",
        ]
        for row, chances in zip(rows, cells, strict=True)
    ]
    what = "The strongest colour is a probability of "
    caption = what + percent(strongest) + ("." if size == 1 else f"; a cell is {size} ranks.")
    head = ["", "item", rank_axis(last, width), "95\u00a0%", "mean"]
    kinds = ["number", "name", "picture", "number", "number spare"]
    shown = table(head, lines, caption, kinds=kinds, named_by=1)
    if fitted.n_clusters == 1:
        return shown
    return tag("div", tag("h3", f"Cluster {group.number}, {percent(group.share)}"), shown)


def _all_items(fitted: _Fitted) -> Html:
    """A table of all items, by mean rank over the population, folded away."""
    groups = fitted.groups
    by_code = [dict(zip(group.codes.tolist(), group.rows, strict=True)) for group in groups]
    means = np.sum([group.share * group.means for group in groups], axis=0)
    codes = np.argsort(means, kind="stable")[:MAX_LISTED].tolist()
    head, kinds = ["item"], ["name"]
    for group in groups:
        of = "" if len(groups) == 1 else f", cluster {group.number}"
        head += [f"rank{of}", "95\u00a0%", "mean"]
        kinds += ["number"] * 3
    lines = [
        [
            name(fitted.posterior.items[code]),
            *(cell for rows in by_code for cell in _item_cells(rows[code])),
        ]
        for code in codes
    ]
    caption = "All items, by mean rank."
    if len(groups) > 1:
        caption = "All items, by mean rank over all users."
    if fitted.n_items > MAX_LISTED:
        caption += f" The first {MAX_LISTED:,} are here; posterior.to_frame() has all."
    return _folded(f"All {fitted.n_items:,} items", table(head, lines, caption, kinds=kinds))


def _item_cells(row: dict[str, Any]) -> list[str]:
    return [f"{row['rank']}", _interval(row), f"{row['mean']:.1f}"]


def _popularity(fitted: _Fitted) -> Html:
    """For orders of one's own: what the population clicks."""
    clicks, rows = fitted.personal.clicks, fitted.personal.most_clicked()
    assert clicks is not None
    counts = clicks.item_counts()[fitted.personal.ties]
    most = max(int(counts.max()), 1)
    words = (
        "Each user has an order of their own, so there is no consensus to show. This is the order "
        "of the whole population: the items by the number of users who clicked them. It serves "
        "users of whom nothing is known."
    )
    lines = [
        [row["rank"], name(row["item"]), bar(count / most, f"{count:,} users"), f"{count:,}"]
        for row, count in zip(rows[:MAX_LISTED], counts.tolist(), strict=False)
    ]
    parts = [tag("p", words), _popular_table(lines[:MAX_SHOWN], "The items clicked most")]
    if len(lines) > MAX_SHOWN:
        rest = _popular_table(lines[MAX_SHOWN:], "The other items")
        parts.append(_folded(f"{len(lines) - MAX_SHOWN:,} more items", rest))
    if fitted.n_items > MAX_LISTED:
        parts.append(tag("p", f"The first {MAX_LISTED:,} of {fitted.n_items:,} items are shown."))
    return join(parts)


def _popular_table(lines: Sequence[Sequence[object]], caption: str) -> Html:
    kinds = ["number", "name", "picture", "number"]
    return table(["", "item", "", "users"], lines, caption, kinds=kinds, named_by=1)


def _clusters(fitted: _Fitted) -> Html:
    if fitted.n_clusters == 1:
        return Html()
    posterior = fitted.posterior
    draws = posterior.shares.reshape(-1, fitted.n_clusters)
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    members = np.bincount(posterior.labels, minlength=fitted.n_clusters)
    is_kept = len(posterior.users) > 0
    lines = [
        [
            f"{group.number}",
            bar(group.share, percent(group.share), float(low[place]), float(high[place])),
            percent(group.share),
            f"{percent(low[place])} to {percent(high[place])}",
            f"{members[place]:,}" if is_kept else "not kept",
        ]
        for place, group in enumerate(fitted.groups)
    ]
    words = (
        "The users fall into groups with different tastes, numbered from 0 as in Python, the "
        "largest first. A user belongs to a group with a probability"
    )
    if is_kept:
        sure = float(posterior.memberships.max(axis=1).mean())
        words += f"; on average, the most probable group of a user has {percent(sure)}"
    words += "."
    caption = (
        "Share of the population, with its 95\u00a0% interval, and the number of users whose most "
        "probable group it is."
    )
    kinds = ["", "picture", "number", "number spare", "number"]
    head = ["cluster", "", "share", "95\u00a0%", "users"]
    apart = tag("div", *(_apart(fitted, group) for group in fitted.groups), class_="pair")
    return join(
        [
            tag("p", words),
            table(head, lines, caption, kinds=kinds),
            tag("h3", "How they differ"),
            tag("p", "The items that each group ranks most above the others, with mean ranks."),
            apart,
        ]
    )


def _apart(fitted: _Fitted, group: _Group) -> Html:
    """The items that a cluster ranks most above the others."""
    others = [each for each in fitted.groups if each is not group]
    weights = np.array([max(each.share, 1e-12) for each in others])
    theirs = np.average([each.means for each in others], axis=0, weights=weights)
    gaps = theirs - group.means
    codes = [code for code in np.argsort(-gaps, kind="stable")[:N_APART].tolist() if gaps[code] > 0]
    lines = [
        [name(fitted.posterior.items[code], 24), f"{group.means[code]:.1f}", f"{theirs[code]:.1f}"]
        for code in codes
    ]
    head = [f"cluster {group.number} likes more", "mean rank here", "in the others"]
    kinds = ["name", "number", "number"]
    return tag("div", table(head, lines, f"Cluster {group.number} against the others", kinds=kinds))


def _check(fitted: _Fitted, evaluation: Evaluation | None) -> Html:
    if evaluation is None:
        return _no_check(fitted)
    calibration = evaluation.calibration
    settings = evaluation.posterior.settings
    found = zip(calibration.stated, calibration.observed, calibration.counts, strict=True)
    rows = [[percent(said), percent(true), f"{count:,}"] for said, true, count in found]
    words = [
        _accuracy(evaluation),
        "A good chance means what it says: of all items with a stated chance of 30\u00a0%, "
        "30\u00a0% should come true. Here, stated and true differ by "
        f"{percent(calibration.error)} on average.",
        f"The check made a fit of its own (method {settings.get('method', 'unknown')}, "
        f"{evaluation.posterior.n_clusters} cluster"
        f"{'' if evaluation.posterior.n_clusters == 1 else 's'}) without the hidden clicks.",
    ]
    caption = "Recommendations by their stated chance. In the picture: area for number, bars for "
    caption += "two standard errors; on the dashed line, stated and true are equal."
    kinds = ["number", "number", "number"]
    numbers = table(["stated", "came true", "number"], rows, caption, kinds=kinds)
    return join(
        [
            *(tag("p", line) for line in words),
            tag("div", _reliability(evaluation), numbers, class_="pair"),
        ]
    )


def _no_check(fitted: _Fitted) -> Html:
    if fitted.fit.clicks is None:
        return tag("p", "Not checked: the check hides clicks, and this fit is of rankings.")
    words = "Not checked. To see how often the chances come true, hide some clicks, and give the "
    code = "check = pm.evaluate(prefs, rng=1)\npm.report(posterior, path, evaluation=check)"
    return join([tag("p", words, "result to the report:"), tag("pre", tag("code", code))])


def _accuracy(evaluation: Evaluation) -> str:
    error = ""
    if np.isfinite(evaluation.accuracy_error):
        error = f" (± {percent(evaluation.accuracy_error)}, one standard error)"
    return (
        f"Of the recommendations to {evaluation.n_users:,} users, {percent(evaluation.accuracy)} "
        f"were right{error}; the most popular items would have been right "
        f"{percent(evaluation.popularity)} of the time."
    )


def _reliability(evaluation: Evaluation) -> Html:
    table = evaluation.calibration
    errors = 2 * np.sqrt(table.observed * (1 - table.observed) / table.counts)
    columns = (table.stated, table.observed, errors, table.counts)
    points = list(zip(*(column.tolist() for column in columns), strict=True))
    return scatter(points, "Stated chance against the share that came true; numbers in the table")


def _examples(fitted: _Fitted, n_examples: int) -> Html:
    clicks = fitted.fit.clicks
    if clicks is None or n_examples == 0:
        return Html()
    known = np.flatnonzero(clicks.is_informative)
    if not len(known):
        return Html()
    places = np.linspace(0, len(known) - 1, min(n_examples, len(known))).round()
    chosen = known[places.astype(np.int64)]
    users = clicks.users[chosen].tolist()
    found = recommend(fitted.fit, N_NEXT, users=users)
    k = found.items.shape[1]
    words = (
        f"Users taken evenly from the list, what they clicked, and what comes next. The chance is "
        f"that of the item to be among the {k} that the user would choose next."
    )
    rows = zip(chosen.tolist(), found.items, found.probabilities, strict=True)
    cards = [_example(fitted, row, items, chances) for row, items, chances in rows]
    return join([tag("p", words), tag("div", *cards, class_="pair")])


def _example(
    fitted: _Fitted, row: int, items: NDArray[np.int64], chances: NDArray[np.float64]
) -> Html:
    posterior = fitted.fit
    assert posterior.clicks is not None
    mine = posterior.clicks.clicks_of(row)
    listed: list[object] = [name(posterior.items[code]) for code in mine[:MAX_CLICKED]]
    if len(mine) > MAX_CLICKED:
        listed.append(f"{len(mine) - MAX_CLICKED:,} more")
    group: object = ""
    if fitted.n_clusters > 1:
        label = int(fitted.posterior.labels[row])
        chance = percent(float(fitted.posterior.memberships[row, label]))
        group = tag("p", f"In cluster {label} with a probability of {chance}.")
    lines = [
        [name(posterior.items[item], 24), bar(chance, percent(chance)), percent(chance)]
        for item, chance in zip(items.tolist(), chances.tolist(), strict=True)
        if item >= 0
    ]
    kinds = ["name", "picture", "number"]
    shown = table(["next", "", "chance"], lines, "Recommended", kinds=kinds)
    who = tag("h3", "User ", name(posterior.users[row], 40))
    return tag("div", who, tag("p", "Clicked ", _and(listed), "."), group, shown, class_="card")


def _again(fitted: _Fitted, command: str | None) -> Html:
    seed = fitted.settings.get("seed")
    words = "The same version, data, seed and options give the same numbers."
    if seed is None:
        words = "The fit was made without a seed (a whole number as rng), so its draws cannot be "
        words += "repeated exactly; a new fit differs by chance."
    parts = [tag("p", words)]
    if command:
        parts.append(tag("pre", tag("code", plain(command, 4000))))
    parts.append(tag("pre", tag("code", _code(fitted))))
    facts = [("version of the fit", str(fitted.settings.get("version", "unknown")))]
    facts += [("version of this page", __version__), ("seed", str(seed))]
    return join([*parts, _facts("What the fit was made with", facts)])


def _code(fitted: _Fitted) -> str:
    kind = "rankings" if fitted.fit.clicks is None else "clicks"
    return (
        "import pseudomallows as pm\n\n"
        f"prefs = pm.Preferences.from_{kind}(...)  # the data\n"
        f"posterior = {call_of(fitted.fit)}\n"
        'pm.report(posterior, "report.html")'
    )


def _facts(caption: str, facts: Sequence[tuple[str, str]]) -> Html:
    return table(["what", "value"], facts, caption, kinds=["", "number"], quiet=True)


def _folded(words: str, content: Html) -> Html:
    return tag("details", tag("summary", words), _scrolled(words, content))


def _scrolled(words: str, content: Html) -> Html:
    """Content that may be wider than the page: it scrolls by itself, with the keyboard too."""
    return tag("div", content, class_="scroll", tabindex=0, role="region", aria_label=words)


def _interval(row: dict[str, Any]) -> str:
    low, high = row["lowest"], row["highest"]
    return f"{low}" if low == high else f"{low} to {high}"


def _and(words: Sequence[object]) -> Html:
    """a, b and c."""
    if len(words) < 2:
        return join(words)
    return join([join(words[:-1], ", "), " and ", words[-1]])
