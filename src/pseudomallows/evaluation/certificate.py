"""A certificate: stated against observed by the user's number of clicks, by how often the items are
clicked, and by how far ahead a probability looks. A mean over all may hide that it is right for
nobody."""

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..personal.personal_fit import GOOD_CALIBRATION
from ..posterior.diagnose import Check

Floats = NDArray[np.float64]
LEAST_USERS, LEAST_SHARE = 50, 0.02  # behind a cell that matters, and of all recommendations
LEAST_EVALUATED = 30  # to say anything: the usual least number for a normal interval of a mean
TOLERANCE = 0.01  # an error of the mean that nobody minds, of probabilities of 0.2 or more
RELATIVE_FROM = 0.2  # below, tolerances shrink in proportion: 5 % of the mean
N_ERRORS = 3.0  # standard errors that are allowed: of a dozen cells one is off by two by chance
FEW = (0, 1, 3, 6, 11, 21, 51)  # clicks, twos and threes: from where on a row of the table counts
AHEAD = (1, 2, 4, 11)  # next clicks


@dataclass(frozen=True)
class Cell:
    """Some of the recommendations.

    Attributes
    ----------
    by, cell : str
        What they are divided by, and which of them these are.
    stated, observed : float
        The mean probability, and the share that were hits.
    low, high : float
        95 % interval of the share, from the differences between users.
    n_users, n_recommendations : int
        How many there are.
    """

    by: str
    cell: str
    stated: float
    observed: float
    low: float
    high: float
    n_users: int
    n_recommendations: int

    @property
    def gap(self) -> float:
        """How far off it is; 0 if that may be sampling variation."""
        gap = abs(self.observed - self.stated)
        is_below = self.observed < self.stated
        reach = self.high - self.observed if is_below else self.observed - self.low
        return gap if gap > N_ERRORS * reach / 1.96 else 0.0

    def row(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return asdict(self)


def certificate_of(
    stated: Floats,
    observed: Floats,
    n_clicks: NDArray[np.int64],
    windows: NDArray[np.int64],
    items: NDArray[np.int64],
    counts: NDArray[np.int64],
    of_groups: tuple[NDArray[np.int64], list[str]] | None = None,
) -> list[Cell]:
    """The cells of ``stated[user, place]`` and ``observed[user, place]``, NaN where there is no
    recommendation. ``counts[item]`` is how often an item was clicked; `of_groups` come from
    `groups_of`."""
    shape = stated.shape
    of_clicks = np.broadcast_to(np.searchsorted(FEW, n_clicks, "right")[:, None] - 1, shape)
    ahead = np.broadcast_to(np.searchsorted(AHEAD, windows, "right")[:, None] - 1, shape)
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    thirds = np.empty(len(counts), dtype=np.int64)  # of all clicks, the most clicked items first
    thirds[order] = np.minimum(3 * before // max(int(counts.sum()), 1), 2)
    popular = np.where(items >= 0, thirds[np.maximum(items, 0)], -1)
    numbers = [f"{range_} click{'' if range_ == '1' else 's'}" for range_ in ranges_of(FEW)]
    by = {
        "users with": (of_clicks, numbers),
        "items": (popular, ["clicked most", "clicked less", "clicked least"]),
        "next clicks": (ahead, ranges_of(AHEAD)),
    }
    if of_groups is not None:
        by["group"] = (np.broadcast_to(of_groups[0][:, None], shape), of_groups[1])
    cells = []
    for what, (groups, words) in by.items():
        for number, name in enumerate(words):
            is_mine = (groups == number) & ~np.isnan(stated)
            if is_mine.any():
                cells.append(cell_of(what, name, stated, observed, is_mine))
    return cells


def groups_of(groups: Any, users: NDArray[Any]) -> tuple[NDArray[np.int64], list[str]] | None:
    """The number of the group of each user, -1 for none, and the names of the groups, of a dict
    {user: group}; None for None.

    >>> groups_of({"ann": "new", "bob": "old"}, np.array(["bob", "eve", "ann"]))
    (array([ 1, -1,  0]), ['new', 'old'])
    """
    if groups is None:
        return None
    if not isinstance(groups, Mapping):
        raise TypeError(f"groups must be a dict {{user: group}}, got {type(groups).__name__}")
    own = [groups.get(user) for user in users.tolist()]
    names = sorted({str(group) for group in own if group is not None})
    if not names:
        raise ValueError("groups names none of the evaluated users: give {user: group}")
    numbers = {name: number for number, name in enumerate(names)}
    return np.array([-1 if group is None else numbers[str(group)] for group in own]), names


def cell_of(
    by: str, name: str, stated: Floats, observed: Floats, is_mine: NDArray[np.bool_]
) -> Cell:
    """One cell; the standard error is that of a ratio of sums over users."""
    rows = np.flatnonzero(is_mine.any(axis=1))
    mine = is_mine[rows]
    sizes, n_all = mine.sum(axis=1), int(mine.sum())
    hits = np.where(mine, observed[rows], 0.0).sum(axis=1)
    share, n_users = float(hits.sum() / n_all), len(rows)
    error = float("nan")
    if n_users > 1:
        away = hits - share * sizes
        error = float(np.sqrt((away**2).sum() * n_users / (n_users - 1)) / n_all)
    said = float(np.where(mine, stated[rows], 0.0).sum() / n_all)
    reach = 1.96 * error
    if n_users > 1 and share in (0.0, 1.0):  # users do not differ, which does not make it certain
        reach = float(reach_of(share, n_all))
    low, high = max(share - reach, 0.0), min(share + reach, 1.0)
    return Cell(by, name, said, share, low, high, n_users, n_all)


def reach_of(share: Any, count: Any) -> Any:
    """How far the 95 % interval of a share of so many reaches, by Agresti and Coull (1998): one hit
    of one does not say all.

    >>> float(reach_of(0.0, 10).round(2))
    0.33
    """
    middle = (share * count + 2) / (count + 4)
    return np.abs(middle - share) + 2 * np.sqrt(middle * (1 - middle) / (count + 4))


def worst_of(cells: list[Cell]) -> Cell | None:
    """The cell that matters and is off most, beyond sampling variation; None if none is."""
    n_all = sum(cell.n_recommendations for cell in cells if cell.by == cells[0].by)
    eligible = [
        cell
        for cell in cells
        if cell.n_users >= LEAST_USERS and cell.n_recommendations >= LEAST_SHARE * n_all
    ]
    worst = max(eligible, key=lambda cell: cell.gap, default=None)
    return worst if worst is not None and worst.gap > 0 else None


def is_mean_right(low: float, high: float, stated: float) -> bool:
    """May observed minus stated, in this interval, be an error that nobody minds?"""
    tolerance = TOLERANCE * min(1.0, stated / RELATIVE_FROM)
    return low <= tolerance and high >= -tolerance


def check_cells(cells: list[Cell]) -> Check:
    """Are the probabilities right for all kinds of users, items and windows?"""
    worst = worst_of(cells)
    gap, words = 0.0 if worst is None else worst.gap, ""
    answer = "no" if gap > 3 * GOOD_CALIBRATION else "with care"
    answer = "yes" if gap <= GOOD_CALIBRATION else answer
    if worst is not None and answer != "yes":
        words = (
            f"Probabilities are furthest off for {worst.by} {worst.cell}: {worst.stated:.1%} "
            f"stated, {worst.observed:.1%} hits."
        )
    return Check("worst group", gap, GOOD_CALIBRATION, answer, words, "", form=".3f")


def ranges_of(edges: tuple[int, ...]) -> tuple[str, ...]:
    """In words.

    >>> ranges_of((1, 2, 4))
    ('1', '2 to 3', '4 or more')
    """
    pairs = itertools.pairwise(edges)
    inner = [str(a) if b == a + 1 else f"{a} to {b - 1}" for a, b in pairs]
    return (*inner, f"{edges[-1]} or more")


def table_of(cells: list[Cell]) -> list[str]:
    """Lines for a terminal."""
    head = f"{'':<36}{'stated':>8}{'observed':>10}{'95 % interval':>19}{'recommendations':>18}"
    return [
        head,
        *(
            f"{cell.by + ' ' + cell.cell:<36}{cell.stated:>8.3f}{cell.observed:>10.3f}"
            f"{f'{cell.low:.3f} to {cell.high:.3f}':>19}{cell.n_recommendations:>18,}"
            for cell in cells
        ),
    ]
