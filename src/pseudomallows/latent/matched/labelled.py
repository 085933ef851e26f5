"""Users of clicks whose labels are part of a chain's state.

A label is drawn by the matched law and accepted by the exact one, so that only users whose label
would change are looked at. Each user has the exact likelihood of its own cluster at hand; that of
the others is wanted now and then, for the memberships.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...distances.tallies import Counts
from ..click_laws import ClickTally, Floats
from ..population import UNITS
from .matched_users import ClickedRows, ClusterLaws, LabelDraw, Labels, MatchedLaws, MatchedUsers


@dataclass(frozen=True)
class LabelledRows:
    """Some rows in a chain: ``labels[row]``; ``values[row]``, the exact log likelihood under the
    cluster of the label, NaN where it is not known, and ``new_values[row]`` where that cluster was
    weighed last; ``kept[row, cluster]``, a sum of memberships; ``answer``, what the last task
    found."""

    labels: Labels
    values: Floats
    new_values: Floats
    kept: Floats | None = None
    answer: Any = None

    @classmethod
    def begin(cls, labels: Labels) -> "LabelledRows":
        """Rows of which no more is known."""
        unknown = np.full(len(labels), np.nan)
        return cls(labels, unknown, unknown)


class Relabelled(NamedTuple):
    """The tally and the exact log likelihood of each cluster, and how many labels have changed."""

    tallies: list[ClickTally]
    values: Floats
    n_changes: int


class LabelledUsers(MatchedUsers):
    """The users of a chain, at hand in blocks or in shards on workers, with their labels."""

    def begin(self, labels: Labels) -> list[ClickTally]:
        """Take these labels; return the tally of each cluster."""
        self._hold([LabelledRows.begin(labels[rows]) for rows in self._slices])
        return self.tallies(labels)

    def begin_by(self, laws: MatchedLaws, draw: LabelDraw) -> None:
        """Draw the first labels by the matched law."""
        self._become(_begin, (laws, draw))

    def relabel(
        self, matched: MatchedLaws, exact: ClusterLaws, is_taken: NDArray[np.bool_], draw: LabelDraw
    ) -> Relabelled:
        """Draw labels by the matched law, accept each by the exact one. ``is_taken[cluster]``: is
        the cluster now where it was weighed last?"""
        exact.walks  # noqa: B018 - made once, before the tasks share them
        answers = self._become(_relabel, (matched, exact, is_taken, draw))
        *tallied, sums, changes = zip(*answers, strict=True)
        tallies = self._add_up(list(zip(*tallied, strict=True)))
        return Relabelled(tallies, _add_sums(sums), sum(changes))

    def weigh_own(self, exact: ClusterLaws) -> Floats:
        """``values[cluster]``: exact log likelihood of the users of each cluster, where it may
        go."""
        exact.walks  # noqa: B018 - made once, before the tasks share them
        return _add_sums(self._become(_weigh_own, (exact,)))

    def reorder(self, order: Counts) -> None:
        """Number the clusters anew: the first one is that which was number ``order[0]``."""
        self._become(_reorder, (order,))

    def keep(self, matched: MatchedLaws, exact: ClusterLaws) -> float:
        """Add the exact memberships to those that are kept; return the log likelihood, labels
        summed out."""
        exact.walks  # noqa: B018 - made once, before the tasks share them
        return sum(self._become(_keep, (matched, exact))) / UNITS

    def memberships(self, matched: MatchedLaws, exact: ClusterLaws) -> Floats:
        """``memberships[row, cluster]``, exactly."""
        exact.walks  # noqa: B018 - made once, before the tasks share them
        found = self._map(_memberships, [(matched, exact)] * len(self._places))
        return np.concatenate(found).astype(np.float64)

    def forget_kept(self) -> None:
        """Keep no memberships."""
        self._become(_remember, (None,))

    def remember(self, kept: Floats) -> None:
        """Go on from these sums of memberships."""
        parts = [(kept[rows],) for rows in self._slices]
        self._become_each(_remember, parts)

    def gather_labels(self) -> Labels:
        """The labels of all rows."""
        return np.concatenate(list(self.population.executor.map(_labels, self._members)))


def _add_sums(sums: Sequence[list[int]]) -> Floats:
    return np.array([sum(each) / UNITS for each in zip(*sums, strict=True)])


# The tasks: of some rows of a population at hand, or of all rows of a shard (None)


def _begin(task: Any) -> LabelledRows:
    *where, _, laws, draw = task
    users = ClickedRows(*where)
    return LabelledRows.begin(users.draw(users.matched_logs(laws), draw))


def _remember(task: Any) -> LabelledRows:
    *_, old, kept = task
    return replace(old, kept=kept, answer=None)


def _settled(old: LabelledRows, is_taken: NDArray[np.bool_]) -> Floats:
    """The likelihoods where the clusters are."""
    return np.where(is_taken[old.labels], old.new_values, old.values)


def _relabel(task: Any) -> LabelledRows:
    *where, old, matched, exact, is_taken, draw = task
    users, labels, values = ClickedRows(*where), old.labels.copy(), _settled(old, is_taken)
    unknown = np.flatnonzero(np.isnan(values))
    values[unknown] = users.log_likelihoods(unknown, labels[unknown], exact)
    logs = users.matched_logs(matched)
    drawn = users.draw(logs, draw)
    rows = np.flatnonzero(drawn != labels)
    new = users.log_likelihoods(rows, drawn[rows], exact)
    logs = logs - matched.log_shares
    log_ratios = new - logs[rows, drawn[rows]] - (values[rows] - logs[rows, labels[rows]])
    accepted = users.judge(rows, log_ratios, draw)
    labels[rows[accepted]], values[rows[accepted]] = drawn[rows[accepted]], new[accepted]
    answer = (*users.count(labels), users.sums(values, labels), int(accepted.sum()))
    return LabelledRows(labels, values, values, old.kept, answer)


def _weigh_own(task: Any) -> LabelledRows:
    *where, old, exact = task
    users, labels = ClickedRows(*where), old.labels
    values = users.log_likelihoods(np.arange(users.n_rows), labels, exact)
    return replace(old, new_values=values, answer=users.sums(values, labels))


def _reorder(task: Any) -> LabelledRows:
    *_, old, order = task
    return replace(old, labels=np.argsort(order).astype(np.int32)[old.labels], answer=None)


def _keep(task: Any) -> LabelledRows:
    *where, old, matched, exact = task
    memberships, (total, _) = ClickedRows(*where).weigh(matched, exact)
    kept = memberships.astype(np.float64) if old.kept is None else old.kept + memberships
    return replace(old, kept=kept, answer=total)


def _memberships(task: Any) -> NDArray[np.float32]:
    *where, matched, exact = task
    return ClickedRows(*where).weigh(matched, exact)[0]


def _labels(rows: LabelledRows) -> Labels:
    return rows.labels
