"""How a correction of probabilities is learnt, from clicks that were hidden or came later."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks
from ..data.preferences import rows_of_users
from ..engines.executors import BLOCK, blocks
from ..kernels.click_rows import ClickRows
from ..kernels.correct import N_FEATURES, fill_cases
from ..kernels.items.top_places import choose_cases, find_places
from .blend import n_of_spread
from .corrections import N_LEARNT, Correction, marks_of
from .next_clicks import (
    MAX_HELD_OUT,
    MAX_SCORED,
    MIN_USERS,
    Later,
    most_users,
    places_in_time,
    seen_table,
    windows_for,
)
from .personal_fit import PersonalModel
from .probabilities import PersonalProbabilities

# Cases by which a map is drawn to the identity at each knot: one in 20 or fewer. With half and with
# twice as many, hits and calibration error on retail (400 items) were the same to 0.01 points.
PULL = 5.0
# Standard deviation between dates in log odds: the gaps of ten date cuts, four of retail and two of
# each of three simulated logs, had a root mean square of 0.19. It counts as much as the two dates
# beside the first that are usual.
USUAL_SPREAD, N_USUAL = 0.2, 2
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cases:
    """``features[case, feature]`` of unseen items, ``targets[case]``, the probability that one was
    a hit, how many cases each stands for, the users they are of, and from which split."""

    features: Floats
    targets: Floats
    weights: Floats
    owners: NDArray[np.int64]
    split: int = 0


def correct_by(
    given: Sequence[tuple[PersonalModel, Clicks, Clicks, NDArray[np.bool_]]],
    rng: np.random.Generator,
    shares: Floats | None = None,
) -> Correction:
    """A correction of models by what came later than, or was hidden from, the clicks that each was
    learnt from. Which of a user's later clicks came first is known by their times; without these,
    each is among the next w of n with a probability of w / n. Last of each is who is as usual, and
    does not keep but a few clicks. With `shares`, how much each user counts, it corrects for one
    missing click alone."""
    later = [later_of(*each[1:], rng) for each in given]
    if shares is not None:
        later = [each._replace(windows=[1]) for each in later]
    model, shown = given[0][:2]
    some = later[0].users[: n_of_spread(shown.n_items)]
    sample, rows = shown.take(some), slice(0, len(some))
    scores = model.scores_for(sample, rows, some)[~seen_table(sample, rows)]
    marks = marks_of(scores, max(each.windows[-1] for each in later))
    parts: list[Cases] = []
    for number, (each, mine) in enumerate(zip(given, later, strict=True)):
        parts += cases_of_split(*each[:2], mine, marks, number, rng)
    if shares is not None:  # no dates that differ
        parts = [replace(p, weights=p.weights * shares[p.owners], split=0) for p in parts]
    return replace(learn_correction(parts, marks), per_click=shares is not None)


def later_of(
    prefs: Clicks, held_out: Clicks, is_usual: NDArray[np.bool_], rng: np.random.Generator
) -> Later:
    """The clicks that are new, of users who are known; of some of them, if they are many."""
    rows = np.flatnonzero(held_out.n_clicks)
    most = most_users(MAX_HELD_OUT, prefs.n_items)
    if len(rows) > most:
        rows = rows[np.sort(rng.choice(len(rows), most, replace=False))]
    held_out = held_out.take(rows)
    chosen = rows_of_users(prefs, held_out.users.tolist())
    known = prefs.take(chosen)
    cells, old = (each.owners * prefs.n_items + each.codes for each in (held_out, known))
    later = held_out.choose(~np.isin(cells, old))
    has_new = (later.n_clicks > 0) & (known.n_clicks > 0)  # others need no correction
    chosen, later = chosen[has_new], later.take(has_new)
    if len(chosen) < MIN_USERS:
        raise ValueError(
            f"held_out must have clicks that are not in the fit, of {MIN_USERS} users or more, "
            f"got {len(chosen)} such users"
        )
    windows, places = windows_for(later.n_clicks), places_in_time(later, rng)
    return Later(chosen, later.starts, later.codes, places, windows, is_usual[chosen])


def cases_of_split(
    model: PersonalModel,
    shown: Clicks,
    later: Later,
    marks: Floats,
    number: int,
    rng: np.random.Generator,
) -> list[Cases]:
    """What the law said of each window, and what is observed, block by block: the order of a user
    is the same for all windows. With very many items only the first places of each user are looked
    at: no other has a probability worth correcting."""
    personal = PersonalProbabilities(model)
    eligible = {window: eligible_users(later, window, rng) for window in later.windows}
    tables = {
        window: personal.prepare(shown.take(later.users[rows]), window)
        for window, rows in eligible.items()
    }
    chosen = np.unique(np.concatenate([*eligible.values()]))
    n_places, size = (N_LEARNT, BLOCK // 4) if model.is_sparse else (shown.n_items, BLOCK)
    parts = []
    for rows in blocks(len(chosen), size):
        some = later.take(chosen[rows])
        seen = shown.take(some.users)
        order = personal.order(seen, slice(0, seen.n_users), n_places, some.users)
        for window in later.windows:
            mine = np.flatnonzero(np.isin(chosen[rows], eligible[window]))
            own, whose = order.take(mine), some.take(mine)
            probabilities = personal.look_up(tables[window], own)
            targets = hits_at(whose, own.items, window, shown.n_items)
            n_unseen = (own.items >= 0).sum(axis=1)
            user, place, stands_for = thin_places(targets, n_unseen, window)
            numbers = (probabilities[user, place], own.scores[user, place], own.few[user])
            of_users = seen.weights[mine] * whose.weights(window)
            features = np.empty((len(place), N_FEATURES))
            fill_cases(*numbers, place, window, marks, features)
            weights = stands_for * of_users[user]
            parts.append(Cases(features, targets[user, place], weights, whose.users[user], number))
    return parts


def eligible_users(later: Later, window: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The users who have so many later clicks, or some of them."""
    eligible = np.flatnonzero(later.n_clicks >= window)
    if len(eligible) > MAX_SCORED:
        eligible = np.sort(rng.choice(eligible, MAX_SCORED, replace=False))
    return eligible


def hits_at(later: Later, items: NDArray[np.int64], window: int, n_items: int) -> Floats:
    """``probabilities[row, place]`` that ``items[row, place]`` was among the next `window`."""
    places = np.empty(len(later.codes), dtype=np.int64)
    find_places(ClickRows(later.starts, later.codes), items, n_items, places)
    probabilities, is_there = np.zeros(items.shape), places >= 0
    owners = np.repeat(np.arange(len(items)), later.n_clicks)
    probabilities[owners[is_there], places[is_there]] = later.is_hit(window)[is_there]
    return probabilities


def thin_places(
    is_hit: Floats, n_unseen: NDArray[np.int64], window: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Row and place of the cases, and for how many places each stands.

    Far down the list, items hardly differ, and few of them are hits: of those that do not, some
    stand for all. ``is_hit[row, place]`` is of the unseen items in the order of each user, the
    first ``n_unseen[row]`` places.
    """
    first = 2 * window + 20  # up to there all places are cases; of the rest 20 are
    rows, places, weights = (np.empty(is_hit.size, dtype) for dtype in (np.int64, np.int64, float))
    size = choose_cases(is_hit, n_unseen, (first, 20), rows, places, weights)
    return rows[:size], places[:size], weights[:size]


def learn_correction(parts: list[Cases], marks: Floats) -> Correction:
    """Learn a correction for windows up to twice the largest that there are cases of.

    Maximum likelihood, with a weak pull towards no correction at all, which keeps it finite; then
    the map, from what is observed along the scale. The cases come in parts, small enough to stay
    near.
    """
    centres, spread = centres_of(parts)
    used = spread > 1e-6  # with one window or one alpha, a feature has no spread
    scaled = [scale_features(part, used, centres, spread) for part in parts]
    slopes = _fit_coefficients(scaled, used, centres[used], spread[used])
    coefficients = np.zeros(len(used) + 1)
    coefficients[:-1][used] = slopes[:-1] / spread[used]
    coefficients[-1] = slopes[-1] - coefficients[:-1] @ centres
    scale = np.concatenate([part.features @ slopes for part in scaled])
    targets, weights = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("targets", "weights")
    )
    owners = np.concatenate([part.owners for part in parts])
    splits = np.concatenate([np.full(len(part.targets), part.split) for part in parts])
    knots, values, errors = learn_map(scale, targets, weights, owners)
    arrays = (coefficients, marks, knots, values, rising_slopes(knots, values))
    errors = np.hypot(errors, spread_of_splits(scale, targets, weights, splits))
    return Correction(*arrays, errors, largest=2 * int(marks[4]))


def spread_of_splits(
    scale: Floats, targets: Floats, weights: Floats, splits: NDArray[np.int64]
) -> float:
    """How much the log odds of what is observed differ between dates, as the standard deviation of
    one more date: by the likeliest items, which have half of the hits that are stated, and by what
    is usual (`USUAL_SPREAD`), since a few dates may agree by accident. Of one split alone nothing
    is known: 0."""
    n_splits = int(splits.max()) + 1
    if n_splits < 2:
        return 0.0
    stated = 1 / (1 + np.exp(-scale))
    order = np.argsort(-scale, kind="stable")
    sums = np.cumsum((weights * stated)[order])
    best = order[sums <= sums[-1] / 2]
    columns = (stated, targets, stated * (1 - stated))
    said, hits, curve = (
        np.bincount(splits[best], (weights * each)[best], n_splits) for each in columns
    )
    shifts = (hits - said) / np.maximum(curve, 1e-9)
    variance = ((shifts - shifts.mean()) ** 2).sum() + N_USUAL * USUAL_SPREAD**2
    return float(np.sqrt(variance / (n_splits - 1 + N_USUAL) * (1 + 1 / n_splits)))


def centres_of(parts: list[Cases]) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each feature."""
    number = sum(len(part.targets) for part in parts)
    centres = np.sum([part.features.sum(axis=0) for part in parts], axis=0) / number
    squares = np.sum([((part.features - centres) ** 2).sum(axis=0) for part in parts], axis=0)
    return centres, np.sqrt(squares / number)


def scale_features(cases: Cases, used: NDArray[np.bool_], centres: Floats, spread: Floats) -> Cases:
    """With the features that are used, in units of their spread, and a constant."""
    scaled = np.ones((len(cases.targets), int(used.sum()) + 1))
    scaled[:, :-1] = (cases.features[:, used] - centres[used]) / spread[used]
    return replace(cases, features=scaled)


def _fit_coefficients(
    parts: list[Cases], used: NDArray[np.bool_], centres: Floats, spread: Floats
) -> Floats:
    """Of a logistic regression; those of items are 0 or more, those of places above 0."""
    identity = np.append((np.flatnonzero(used) == 0) * spread, 0.0)  # the odds as they are
    identity[-1] = identity[0] / spread[0] * centres[0]
    least = np.zeros(len(used))
    least[5:8] = 1e-3  # a better place is always better
    return fit_logistic(parts, identity, np.append(least[used] * spread, -np.inf))


def fit_logistic(parts: list[Cases], centre: Floats, lows: Floats) -> Floats:
    """Maximum likelihood of a logistic regression whose coefficients are `lows` or more, with a
    pull of all but the last, the constant, towards a `centre`: Newton's steps, each bounded."""
    from scipy.linalg import solve_triangular
    from scipy.optimize import lsq_linear

    pull = np.append(np.ones(len(centre) - 1), 1e-9)
    values = np.maximum(centre, lows)
    best, slope, curve = losses_of(parts, centre, pull, values)
    for _ in range(50):
        root = np.linalg.cholesky(curve).T
        wanted = root @ values - solve_triangular(root, slope, trans="T")
        step = lsq_linear(root, wanted, (lows, np.inf), method="bvls").x - values
        if -(slope + curve @ step / 2) @ step < 1e-4:  # near the end, as good as the gain
            values = values + step
            break
        for _ in range(20):
            reached, next_slope, next_curve = losses_of(parts, centre, pull, values + step)
            if reached <= best:
                break
            step = step / 2
        else:
            break
        best, values, slope, curve = reached, values + step, next_slope, next_curve
    return np.maximum(values, lows)


def losses_of(
    parts: list[Cases], centre: Floats, pull: Floats, values: Floats
) -> tuple[float, Floats, Floats]:
    """Minus the log likelihood, with the `pull` towards the `centre`, its slope and its curvature:
    sums over some thousand cases at a time, which stay near."""
    loss = float(0.5 * pull @ (values - centre) ** 2)
    slope, curve = pull * (values - centre), np.diag(pull)
    for part in parts:
        for rows in blocks(len(part.targets), 2048):
            features, targets, weights = part.features[rows], part.targets[rows], part.weights[rows]
            scale = features @ values
            odds = np.exp(-np.abs(scale))
            likely = 1 / (1 + odds)
            probabilities = np.where(scale > 0, likely, 1 - likely)
            loss += float(weights @ (np.maximum(scale, 0) + np.log1p(odds) - targets * scale))
            slope = slope + features.T @ (weights * (probabilities - targets))
            curve += features.T @ ((weights * likely * (1 - likely))[:, None] * features)
    return loss, slope, curve


def learn_map(
    scale: Floats, targets: Floats, weights: Floats, owners: NDArray[np.int64]
) -> tuple[Floats, Floats, Floats]:
    """Knots on a logistic scale, the log odds of what is observed there, which rise, and their
    standard errors, from how much users differ.

    In bins of equal numbers of hits: the log odds of what is observed, less those of what the scale
    said, are added to the scale. Bins that would not rise are pooled.
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(scale, kind="stable")
    scale, targets, weights = scale[order], targets[order], weights[order]
    owners = owners[order]
    n_hits = np.cumsum(targets * weights)
    n_knots = int(min(20, max(n_hits[-1] // 100, 1)))  # of 100 hits each, known to 10 %
    edges = np.searchsorted(n_hits, np.linspace(0, n_hits[-1], n_knots + 1)[1:-1], "right")
    starts = np.unique(np.append(0, edges[edges < len(scale)]))
    said = 1 / (1 + np.exp(-scale))
    sums = [np.add.reduceat(weights * x, starts) for x in (1.0, said, targets, said * scale)]
    n_cases, n_said, n_true, sum_scale = sums
    knots, stated = sum_scale / n_said, n_said / n_cases
    is_hit = (n_true + PULL * stated) / (n_cases + PULL)
    shift = np.log(is_hit / (1 - is_hit)) - np.log(stated / (1 - stated))
    pooled = isotonic_regression(knots + shift, weights=n_said)
    firsts = pooled.blocks[:-1]
    centres = np.add.reduceat(knots * n_said, firsts) / np.add.reduceat(n_said, firsts)

    # the hits of a user are not independent: squares of the sums of each
    sizes = np.diff(np.append(starts, len(scale)))
    bins = np.searchsorted(firsts, np.repeat(np.arange(len(starts)), sizes), "right") - 1
    away = weights * (targets - np.repeat(n_true / n_cases, sizes))
    cells, places = np.unique(bins * (owners.max() + 1) + owners, return_inverse=True)
    squares = np.bincount(places, away) ** 2
    variances = np.bincount(cells // (owners.max() + 1), squares, len(firsts))
    curves = np.add.reduceat(n_cases * is_hit * (1 - is_hit), firsts)
    return centres, np.asarray(pooled.x[firsts]), np.sqrt(variances) / curves


def rising_slopes(knots: Floats, values: Floats) -> Floats:
    """Slopes at the knots by which the cubics between them rise (Fritsch and Butland 1984); at the
    ends that of the logistic scale itself, as far as it lets them."""
    if len(knots) == 1:
        return np.ones(1)
    widths, rises = np.diff(knots), np.diff(values) / np.diff(knots)
    near, far = widths[1:] + 2 * widths[:-1], 2 * widths[1:] + widths[:-1]
    inside = (near + far) / (near / rises[:-1] + far / rises[1:])
    return np.concatenate([np.minimum(1, 3 * rises[:1]), inside, np.minimum(1, 3 * rises[-1:])])
