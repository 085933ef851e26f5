"""Which consensuses the clicks of a user speak for, from tables made once."""

import threading

import numpy as np
from numpy.typing import NDArray

from ...kernels.click_rows import ClickRows
from ...kernels.footrule.likelihood import logs_of_factorials
from ...kernels.footrule.memberships import N_FINE, Consensuses, LeapTables, fill_log_weights
from ...kernels.footrule.walks import make_walks

Floats = NDArray[np.float64]
MAX_BYTES = 128 * 2**20  # of the tables; what they do not hold is summed step by step
MAX_GAPS, FIRST_GAPS = 64, 8
MAX_STATES = 64  # that count: laws so flat that there are more have no tables
N_STARTS = 512  # places of a walk whose norm is tabulated
NOTHING = 1e-14  # part of state 0, in the eigenvectors left out, of that in the first
NEGLIGIBLE = 1e-8  # part of a state; it counts squared, for the way there and the way back


class MembershipTables:
    """Some consensuses, of each cluster one a draw, and what tells which of them a user's clicks
    speak for.

    Parameters
    ----------
    consensuses : (n_draws, n_clusters, n_items) array
        ``consensuses[draw, cluster, item]`` is a rank.
    alphas, log_weights : (n_draws, n_clusters) arrays
        Concentration of each, and the log of its weight before any clicks are seen: that of the
        draw, times the cluster's share in it.
    """

    def __init__(self, consensuses: NDArray[np.int32], alphas: Floats, log_weights: Floats):
        self.n_draws, self.n_clusters, self.n_items = consensuses.shape
        if not alphas.shape == log_weights.shape == consensuses.shape[:2]:
            raise ValueError("there must be an alpha and a weight for each consensus")
        n_items = self.n_items
        ranks = np.ascontiguousarray(consensuses.reshape(-1, n_items).T)
        values, law_of = np.unique(alphas, return_inverse=True)
        self._lams = values / n_items
        priors = np.ascontiguousarray(log_weights).reshape(-1)
        self._sizes = np.array([n_states(n_items, lam) for lam in self._lams])
        walks, factorials = make_walks(self._lams, n_items), logs_of_factorials(n_items)
        self._model = Consensuses(ranks, priors, law_of.reshape(-1), walks, factorials)
        size = int(np.minimum(self._sizes, MAX_STATES).max())
        room = MAX_BYTES // (len(values) * bytes_of_a_gap(n_items, size))
        self._max_gaps = min(room, MAX_GAPS, n_items)
        self._lock = threading.Lock()
        self._tables = self._make(min(FIRST_GAPS, self._max_gaps))

    def fill(self, clicks: ClickRows, logs: Floats) -> int:
        """Fill ``logs[row, g]``, log weights given the clicks of each row, g counting clusters
        fastest; return how many exact sums it took."""
        self._make_room(int(np.diff(clicks.starts).max()))
        n_sums: int = fill_log_weights(clicks, self._model, self._tables, self.n_clusters, logs)
        return n_sums

    def _make_room(self, n_clicks: int) -> None:
        """Tables for the gaps of users with so many clicks."""
        wanted = min(n_clicks + 1, self._max_gaps)
        if wanted <= self._tables.rates.shape[1]:
            return
        with self._lock:
            n_gaps = self._tables.rates.shape[1]
            if n_gaps >= wanted:  # another thread has made them
                return
            while n_gaps < wanted:
                n_gaps = min(2 * n_gaps, self._max_gaps)
            self._tables = self._make(n_gaps)

    def _make(self, n_gaps: int) -> LeapTables:
        return make_tables(self.n_items, self._lams, self._sizes, n_gaps)


def n_states(n_items: int, lam: float) -> int:
    """How many states are not negligible on a long walk without a gap; with one there are fewer."""
    from scipy.linalg import eigh_tridiagonal

    last = n_items // 2
    matrix = _both(np.zeros(1, dtype=np.int64), lam, last + 1)[0]
    beside = np.diagonal(matrix, 1)
    _, vectors = eigh_tridiagonal(
        np.diagonal(matrix), beside, select="i", select_range=(last, last)
    )
    return int(np.flatnonzero(np.abs(vectors[:, 0]) > NEGLIGIBLE)[-1]) + 1


def bytes_of_a_gap(n_items: int, size: int) -> int:
    """Memory of the tables of one law and one gap."""
    n_powers = N_FINE + n_items // N_FINE + 1
    return 8 * (size * (size + n_powers + 1) + min(n_items, N_STARTS) + 3) + 2 * n_items


def make_tables(n_items: int, lams: Floats, sizes: NDArray[np.int64], n_gaps: int) -> LeapTables:
    """The tables of `fill_log_weights`: norms, for bounds, and what leaps need."""
    n_laws, n_starts = len(lams), min(n_items, N_STARTS) + 1
    size = int(np.minimum(sizes, MAX_STATES).max())
    rates, falls = np.full((n_laws, n_gaps), np.inf), np.zeros((n_laws, n_gaps))
    nothings = np.zeros(n_laws)
    starts, firsts = np.zeros((n_laws, n_gaps, n_starts)), np.zeros((n_laws, n_gaps, size))
    fine = np.zeros((n_laws, n_gaps, N_FINE, size))
    coarse = np.zeros((n_laws, n_gaps, n_items // N_FINE + 1, size))
    moves = np.zeros((n_laws, n_gaps, size, size))
    actives = np.zeros((n_laws, n_gaps, n_items + 1), dtype=np.int16)
    gaps, far = np.arange(n_gaps), np.arange(coarse.shape[2])
    for law in np.flatnonzero(sizes <= MAX_STATES).tolist() if n_gaps else []:
        lam, own = lams[law], sizes[law]
        matrices = _both(gaps, lam, own)
        roots, vectors = np.linalg.eigh(matrices)
        roots, vectors = np.maximum(roots[:, ::-1], 1e-300), vectors[:, :, ::-1]
        parts = first_parts(matrices, roots, vectors)
        rates[law], firsts[law, :, :own] = np.log(roots[:, 0]), parts
        ratios = (np.log(roots) - rates[law][:, None])[:, None]
        fine[law, :, :, :own] = np.exp(ratios * np.arange(N_FINE)[:, None])
        coarse[law, :, :, :own] = np.exp(ratios * (N_FINE * far)[:, None])
        powers = np.exp(2 * ratios * np.arange(n_starts)[:, None])
        norms = np.einsum("gdj,gj->gd", powers, parts**2)
        starts[law] = 0.5 * np.log(norms) + rates[law][:, None] * np.arange(n_starts)
        turned = np.swapaxes(vectors[:-1], 1, 2) @ _fall(gaps[1:], lam, own) @ vectors[1:]
        squares = np.linalg.eigvalsh(np.swapaxes(turned, 1, 2) @ turned)[:, -1]
        falls[law, 1:] = np.sqrt(squares) * (1 + 1e-12)
        moves[law, 1:, :own, :own] = np.swapaxes(turned, 1, 2)
        nothings[law] = NOTHING * abs(parts[0, 0])
        lasts = np.log(nothings[law]) / np.minimum(ratios[:, 0, 1:, None], -1e-300)
        actives[law] = 1 + (lasts > np.arange(n_items + 1)).sum(axis=1)
    return LeapTables(rates, falls, starts, firsts, fine, coarse, moves, actives, nothings)


def first_parts(matrices: Floats, roots: Floats, vectors: Floats) -> Floats:
    """``[gap, j]``: the part of state 0 in each eigenvector, with a small relative error.

    State 0 is far from where the first eigenvectors live, and they are known to a small absolute
    error only. So take them from the pivots of the matrix minus the eigenvalue, from above and from
    below, up to the state where both meet best (Dhillon 1997); nothing cancels on the way.
    """
    size = matrices.shape[1]
    k = np.arange(size)
    diagonal, beside = matrices[:, k, k], matrices[:, k[:-1], k[1:]]
    shifted = diagonal[:, :, None] - roots[:, None]  # gap, state, eigenvector
    down, up = shifted.copy(), shifted.copy()
    squares = (beside**2)[:, :, None]
    for i in range(1, size):
        down[:, i] -= squares[:, i - 1] / _not_zero(down[:, i - 1])
        up[:, -i - 1] -= squares[:, -i] / _not_zero(up[:, -i])
    twist = np.argmin(np.abs(down + up - shifted), axis=1)[:, None]  # gap, 1, eigenvector
    exact = np.where(k[:, None] == twist, np.take_along_axis(vectors, twist, axis=1), 0.0)
    for i in range(1, size):
        lower = -beside[:, i - 1, None] / _not_zero(up[:, i]) * exact[:, i - 1]
        exact[:, i] = np.where(i > twist[:, 0], lower, exact[:, i])
        higher = -beside[:, -i, None] / _not_zero(down[:, -i - 1]) * exact[:, -i]
        exact[:, -i - 1] = np.where(size - 1 - i < twist[:, 0], higher, exact[:, -i - 1])
    parts = exact[:, 0] / np.linalg.norm(exact, axis=1)
    return np.asarray(np.where(roots > 1e-8 * roots[:, :1], parts, vectors[:, 0]))


def _not_zero(values: Floats) -> Floats:
    return np.where(values == 0.0, 1e-300, values)


def _both(gaps: NDArray[np.int64], lam: float, size: int) -> Floats:
    """``[gap]``: the symmetric matrix of a place with an item and a rank."""
    k = np.arange(size)
    matrix = np.zeros((len(gaps), size, size))
    matrix[:, k, k] = np.exp(-2 * lam * k) * (1 + 2 * k + gaps[:, None])
    low, high = k[:-1], k[1:]
    beside = np.exp(-lam * (low + high)) * np.sqrt(high * (high + gaps[:, None]))
    matrix[:, low, high] = matrix[:, high, low] = beside
    return matrix


def _fall(gaps: NDArray[np.int64], lam: float, size: int) -> Floats:
    """``[gap]``: the matrix of a place with a rank alone, where the gap falls."""
    k = np.arange(size)
    matrix = np.zeros((len(gaps), size, size))
    matrix[:, k, k] = np.exp(-2 * lam * k) * np.sqrt(k + gaps[:, None])
    matrix[:, k[1:], k[:-1]] = np.exp(-lam * (2 * k[1:] - 1)) * np.sqrt(k[1:])
    return matrix
