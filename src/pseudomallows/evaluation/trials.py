"""Who is judged, and by which clicks: at random, the last in time, after a date, or given."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..engines.executors import Executor
from ..files.later import read_later
from ..posteriors.personal import Fit
from ..preferences import Clicks
from ..preferences.held_out import later_clicks
from ..preferences.splits import (
    Split,
    as_time,
    hide_last,
    hide_random,
    split_at,
    time_in_words,
    time_of_share,
)
from ..rankings import check_count, check_name, check_rankings
from ..recommendations.recommend import Recommendations, recommend
from .result import Judged

SPLITS = ("random", "last", "time")
SHARE = 0.2  # of the clicks, hidden by a split in time
USUAL_HIDE = 10


@dataclass(frozen=True, eq=False)
class Trial:
    """What is learnt from, who is judged (rows), and what is right: the clicks that are hidden."""

    shown: Clicks
    hidden: Clicks
    judged: NDArray[np.int64]
    k: int
    window: int
    who: Judged

    def recommend(self, posterior: Fit, executor: Executor | None) -> Recommendations:
        """The recommendations to those who are judged."""
        users = self.shown.users[self.judged].tolist()
        return recommend(posterior, self.k, users=users, window=self.window, executor=executor)


def make_trial(
    prefs: Clicks,
    hide: int | None,
    k: int | None,
    split: str | None,  # None with test or truth
    given: dict[str, Any],  # test, truth, at, share
    rng: np.random.Generator,
) -> Trial:
    """The test that is asked for; what does not go together is refused."""
    if split is not None:
        check_name(split, "split", SPLITS)
    for name in ("at", "share"):
        if given[name] is not None and (split != "time" or given["test"] is not None):
            raise ValueError(f"{name} is for split='time': leave it out, or give that")
    asked = [name for name in ("test", "truth") if given[name] is not None]
    asked += [f"split={split!r}"] if split is not None else []
    if len(asked) > 1:
        raise ValueError(f"{asked[0]} already says what is judged: leave out {asked[1]}")
    if given["truth"] is not None:
        return _by_truth(prefs, given["truth"], k)
    if given["test"] is not None:
        return _by_test(prefs, given["test"], k)
    if split == "time":
        return _by_time(prefs, given["at"], given["share"], k)
    return _by_hiding(prefs, hide, k, split or "random", rng)


def _by_hiding(
    prefs: Clicks, hide: int | None, k: int | None, split: str, rng: np.random.Generator
) -> Trial:
    """Right is what was hidden, so many clicks of each user who has more."""
    hide = USUAL_HIDE if hide is None else hide
    found = (hide_random if split == "random" else hide_last)(prefs, hide, rng)
    if split == "random":  # what is hidden by chance did not come later
        found = Split(found.shown, replace(found.hidden, times=None))
    n_few = int((prefs.n_clicks <= hide).sum())
    clicks = "click" if hide == 1 else "clicks"
    words = f"{hide} {clicks} of each user, chosen at random"
    if split == "last":
        words = f"each user's last {clicks if hide == 1 else f'{hide} {clicks}'}"
    reason = f"with {hide} {clicks} or fewer (lower hide to judge them)"
    return _make(found, k, hide, words, {reason: n_few})


def _by_time(prefs: Clicks, at: Any, share: float | None, k: int | None) -> Trial:
    """Right is all that came later than a time."""
    if at is not None and share is not None:
        raise ValueError("give the time of the split by at or by share, not by both")
    time = as_time(at) if at is not None else time_of_share(prefs, share or SHARE)
    found = split_at(prefs, time)
    when = time_in_words(time)
    before, after = found.shown.n_clicks > 0, found.hidden.n_clicks > 0
    reasons = {
        f"without a click before {when}": int((after & ~before).sum()),
        "without a click after it": int((before & ~after).sum()),
        "without any click": int((~before & ~after).sum()),
    }
    return _make(found, k, None, f"all clicks from {when} on", reasons)


def _by_test(prefs: Clicks, test: Any, k: int | None) -> Trial:
    """Right are the clicks that were given for it, and are not in `prefs`."""
    later = later_clicks(read_later(test, prefs), prefs, "test")
    known = prefs.owners * prefs.n_items + prefs.codes
    cells = later.clicks.owners * prefs.n_items + later.clicks.codes
    is_new = ~np.isin(cells, known)
    hidden = later.clicks.choose(is_new)
    if not is_new.any():
        raise ValueError("test has no click that is not in prefs already: give later clicks")
    has_old, has_new = prefs.n_clicks > 0, hidden.n_clicks > 0
    reasons = {
        "in test, but not in prefs": later.strange_users,
        "without a new click in test": int((has_old & ~has_new).sum()),
        "without a click in prefs": int((~has_old).sum()),
    }
    left_out = later.n_left_out + int((~is_new).sum())
    words = "the clicks of test"
    if left_out:
        words += f" (without {left_out:,} of {later.n_clicks:,} that are in prefs already, or of "
        words += "users or items that are not)"
    return _make(Split(prefs, hidden), k, None, words, reasons, later.strange_users)


def _make(
    split: Split,
    k: int | None,
    window: int | None,
    words: str,
    reasons: dict[str, int],
    n_strangers: int = 0,
) -> Trial:
    sizes = split.hidden.n_clicks
    judged = np.flatnonzero((sizes > 0) & (split.shown.n_clicks > 0))
    if not len(judged):
        told = "; ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        raise ValueError(f"no user can be judged by {words}: {told}")
    if window is None:  # as many as come later, on average
        window = max(1, round(float(sizes[judged].mean())))
    k = check_k(k, split.shown.take(judged))
    others = {reason: count for reason, count in reasons.items() if count}
    who = Judged(words, len(judged), split.shown.n_users + n_strangers, others)
    return Trial(*split, judged, k, window, who)


def _by_truth(prefs: Clicks, truth: ArrayLike, k: int | None) -> Trial:
    """Right are the k true ranks after the clicks."""
    rankings = check_rankings(truth, "truth")
    if rankings.shape != (prefs.n_users, prefs.n_items):
        raise ValueError(
            f"truth must have {prefs.n_users} users and {prefs.n_items} items, "
            f"got {rankings.shape[0]} and {rankings.shape[1]}"
        )
    k, n_clicks = check_k(k, prefs), prefs.n_clicks[:, None]
    owners, codes = np.nonzero((rankings > n_clicks) & (rankings <= n_clicks + k))
    starts = np.searchsorted(owners, np.arange(prefs.n_users + 1))
    right = Clicks(prefs.weights, prefs.users, prefs.items, starts, codes.astype(np.int32))
    words = Judged(f"the {k} true ranks after the clicks", prefs.n_users, prefs.n_users, {})
    return Trial(prefs, right, np.arange(prefs.n_users), k, k, words)


def check_k(k: int | None, seen: Clicks) -> int:
    """The number of recommendations, of which one of these users has as many at least."""
    most = seen.n_items - int(seen.n_clicks.min())
    k = min(10, most) if k is None else check_count(k, "k")
    if k > most:
        raise ValueError(f"k must be at most {most}, all items that a user has not seen, got {k}")
    return k
