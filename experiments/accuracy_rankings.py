"""Figure 8 of the paper: accuracy of the consensus against computing time, full rankings.

The paper: the Markov chain needs a long burn-in, then it is the more accurate; the Pseudo-Mallows
needs none, and is accurate in a much shorter time. Data: Mallows draws around a random consensus,
so that labels tell nothing, alpha known. Accuracy: footrule distance of the CP consensus to the
truth. The pictures that name the paper's four settings are not in its text; these four span the
sizes of its other studies.

- Pseudo-Mallows: Algorithm 3, sigma 0 and sigma 3;
- balanced: balanced Pseudo-Mallows, with its importance weights;
- chain on costs: swaps on the n x n table of costs, from the exact MAP, 10 n proposals a draw;
- chain on users: the paper's opponent, leap-and-shift from a random start, which visits every user
  at each step, as BayesMallows does. Compiled, and it looks at the items that move only.
Both chains throw away the first half. Seconds hold all that a method does from the rankings to the
consensus, compiled code warm, one thread. Half a minute in the reduced setting.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numba import njit

import paper
import pseudomallows as pm
from pseudomallows.kernels.moves import accepts
from pseudomallows.kernels.streams import below, start_stream
from pseudomallows.laws.law import Law
from pseudomallows.laws.registry import make_law
from pseudomallows.sampling.chain import Chain, Moves
from pseudomallows.sampling.start import start_one
from pseudomallows.scores import share_of_ranks

CASES = [(100, 20, 2.0), (500, 50, 3.0), (500, 50, 5.0), (1000, 100, 5.0)]  # N, n, alpha
DRAWS = [10, 50, 200, 1000, 5000]  # of the laws and of the chain on costs
STEPS = [200, 800, 3200, 12_800, 51_200]  # of the chain on users
KEEP = 10  # of the chain on users, every tenth step is counted
N_MOVES = 10  # proposals for each item in a sweep of the chain on costs
THREAD = pm.Threads(1)
SETTINGS = paper.Settings(
    reduced={"cases": CASES, "n_datasets": 10, "draws": DRAWS[:-1], "steps": STEPS},
    full={"cases": CASES, "n_datasets": 20, "draws": DRAWS, "steps": [*STEPS, 204_800]},
    smallest={"cases": [(60, 12, 3.0)], "n_datasets": 4, "draws": [10, 200], "steps": [100, 6400]},
)
COLOURS = {
    "Pseudo-Mallows, sigma 0": "blue",
    "Pseudo-Mallows, sigma 3": "sky",
    "balanced": "green",
    "chain on costs": "orange",
    "chain on users": "red",
}
TICKS = [0, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]  # of distances


@njit(cache=True, nogil=True)
def cost_change(ranks, item, there, here):
    """Sum over the users of |R - there| - |R - here|, for one item."""
    total = 0
    for user in range(ranks.shape[1]):
        rank = ranks[item, user]
        total += abs(rank - there) - abs(rank - here)
    return total


@njit(cache=True, nogil=True)
def choices(rank, leap, n_items):
    """How many ranks an item at `rank` (from 0) can leap to."""
    return min(rank + leap, n_items - 1) - max(rank - leap, 0)


@njit(cache=True, nogil=True)
def leap_over_users(stream, ranks, rate, leap, consensus, ordering):
    """One step of leap-and-shift; `ranks[item, user]` and all ranks here are from 0."""
    n_items = len(consensus)
    item = below(stream, n_items)
    here = consensus[item]
    there = max(here - leap, 0) + below(stream, choices(here, leap, n_items))
    if there >= here:
        there += 1
    side = 1 if there > here else -1
    change = cost_change(ranks, item, there, here)
    for rank in range(here + side, there + side, side):
        change += cost_change(ranks, ordering[rank], rank - side, rank)
    log_ratio = -rate * change
    if abs(there - here) > 1:
        log_ratio += np.log(choices(here, leap, n_items) / choices(there, leap, n_items))
    if not accepts(stream, log_ratio):
        return
    for rank in range(here + side, there + side, side):
        between = ordering[rank]
        consensus[between] = rank - side
        ordering[rank - side] = between
    consensus[item] = there
    ordering[there] = item


@njit(cache=True, nogil=True)
def run_over_users(stream, ranks, rate, leap, n_steps, keep, consensus, counts):
    """Make `n_steps` steps; add one in `keep` states to `counts[item, rank]`."""
    n_items = len(consensus)
    ordering = np.empty(n_items, dtype=np.int64)
    for item in range(n_items):
        ordering[consensus[item]] = item
    for step in range(n_steps):
        leap_over_users(stream, ranks, rate, leap, consensus, ordering)
        if step % keep == keep - 1:
            for item in range(n_items):
                counts[item, consensus[item]] += 1


class UserChain:
    """The paper's opponent: it keeps the rankings, and visits every user at each step."""

    def __init__(self, rankings: paper.Array, alpha: float, rng: np.random.Generator):
        n_items = rankings.shape[1]
        self.ranks = np.ascontiguousarray(rankings.T - 1, dtype=np.int32)
        self.rate, self.leap = alpha / n_items, max(1, n_items // 5)  # the leap of BayesMallows
        self.consensus = rng.permutation(n_items)
        self.stream = np.empty(1, dtype=np.uint64)
        start_stream(int(rng.integers(2**63)), 0, 0, self.stream)

    def run(self, n_steps: int, keep: int = KEEP) -> paper.Array:
        """Go on; `counts[item, rank - 1]` of the states on the way."""
        counts = np.zeros((len(self.consensus), len(self.consensus)), dtype=np.int64)
        place = (self.ranks, self.rate, self.leap)
        run_over_users(self.stream, *place, n_steps, keep, self.consensus, counts)
        return counts


def cp_consensus(table: paper.Array) -> paper.Array:
    """Place by place, the item, among those left, most likely there or before."""
    cumulative, means = table.cumsum(axis=1), table @ np.arange(len(table))
    consensus = np.zeros(len(table), dtype=np.int64)
    for place in range(len(table)):
        scores = np.where(consensus == 0, cumulative[:, place], -1.0)
        best = np.flatnonzero(scores == scores.max())
        consensus[best[means[best].argmin()]] = place + 1
    return consensus


def by_law(
    rankings: paper.Array, alpha: float, n_draws: int, rng: np.random.Generator, **options: float
) -> paper.Array:
    """Independent draws of a Pseudo-Mallows law."""
    law = pm.PseudoMallows(rankings, alpha, **options)
    draws = law.draw_weighted(n_draws, rng)
    return cp_consensus(share_of_ranks(draws.rankings, draws.weights if law.balanced else None))


def exact_chain(law: Law, alpha: float, rng: np.random.Generator) -> Chain:
    """A chain of method "mcmc" at the best consensus; alpha is fixed."""
    moves = Moves(n_moves=N_MOVES * law.n_items if law.is_exact else None)
    return Chain(law, start_one(law, alpha, moves, "map", rng), moves, rng)


def draws_of(chain: Chain, n_first: int, n_draws: int) -> paper.Array:
    """The consensus after each sweep, the first ones left out."""
    for _ in range(n_first):
        chain.sweep(adapt=True)
    draws = np.empty((n_draws, chain.law.n_items), dtype=np.int32)
    for draw in draws:
        chain.sweep(adapt=False)
        draw[:] = chain.state.consensus[0]
    return draws


def by_costs(
    rankings: paper.Array, alpha: float, n_draws: int, rng: np.random.Generator
) -> paper.Array:
    """Our chain, from the MAP; as many sweeps again are thrown away first."""
    law = make_law(pm.Preferences.from_rankings(rankings), THREAD)
    chain = exact_chain(law, alpha, rng)
    return cp_consensus(share_of_ranks(draws_of(chain, n_draws, n_draws)))


def over_users(
    rankings: paper.Array, alpha: float, steps: list[int], rng: np.random.Generator
) -> Iterator[tuple[int, float, paper.Array]]:
    """Steps, seconds and consensus of one long run of the opponent, at each number of steps."""
    start = time.process_time()
    chain, done = UserChain(rankings, alpha, rng), 0
    seconds = time.process_time() - start
    for n_steps in steps:
        start = time.process_time()
        chain.run(n_steps // 2 - done)  # up to here all is thrown away
        consensus = cp_consensus(chain.run(n_steps - n_steps // 2))
        seconds, done = seconds + time.process_time() - start, n_steps
        yield n_steps, seconds, consensus


METHODS: dict[str, Callable[..., paper.Array]] = {
    "Pseudo-Mallows, sigma 0": by_law,
    "Pseudo-Mallows, sigma 3": lambda *data: by_law(*data, sigma=3.0),
    "balanced": lambda *data: by_law(*data, balanced=True),
    "chain on costs": by_costs,
}


def measure(
    rankings: paper.Array, alpha: float, setting: dict, rng: np.random.Generator
) -> Iterator[tuple[str, int, float, paper.Array]]:
    """Method, draws or steps, seconds and consensus, for all budgets on one data set."""
    for n_draws in setting["draws"]:
        for name, method in METHODS.items():
            start = time.process_time()
            consensus = method(rankings, alpha, n_draws, rng)
            yield name, n_draws, time.process_time() - start, consensus
    for n_steps, seconds, consensus in over_users(rankings, alpha, setting["steps"], rng):
        yield "chain on users", n_steps, seconds, consensus


def run(setting: dict, seed: int) -> list[paper.Row]:
    """A row for each case, data set, method and budget."""
    rng, rows = np.random.default_rng(seed), []
    tiny = pm.simulate_rankings(5, 4, 1.0, rng=rng).rankings
    for _ in measure(tiny, 1.0, {"draws": [2], "steps": [4]}, rng):
        pass  # compiles
    for (n_users, n_items, alpha), dataset in paper.each(
        setting["cases"], range(setting["n_datasets"])
    ):
        case = {"n_users": n_users, "n_items": n_items, "alpha": alpha}
        data = pm.simulate_rankings(n_users, n_items, alpha, rng=rng)
        for name, size, seconds, consensus in measure(data.rankings, alpha, setting, rng):
            found = {"dataset": dataset, "method": name, "draws": size, "seconds": seconds}
            rows.append(case | found | {"distance": pm.footrule(consensus, data.consensus)})
    return rows


def ends(rows: list[paper.Row]) -> dict[str, tuple[float, float]]:
    """{method: (median seconds, median distance)} at the largest budget."""
    found = {}
    for name in paper.unique(rows, "method"):
        own = paper.select(rows, method=name)
        last = paper.select(own, draws=max(row["draws"] for row in own))
        found[name] = tuple(
            float(np.median(paper.column(last, what))) for what in ("seconds", "distance")
        )
    return found


def time_to(rows: list[paper.Row], limit: float) -> dict[str, float | None]:
    """{method: median seconds of the smallest budget with a median distance of at most `limit`}."""
    found: dict[str, float | None] = {}
    for name in paper.unique(rows, "method"):
        own = paper.select(rows, method=name)
        sizes = [
            size
            for size in paper.unique(own, "draws")
            if np.median(paper.column(paper.select(own, draws=size), "distance")) <= limit
        ]
        fast = paper.select(own, draws=min(sizes)) if sizes else None
        found[name] = None if fast is None else float(np.median(paper.column(fast, "seconds")))
    return found


def summarise(rows: list[paper.Row]) -> str:
    """For each case, distance at the end, and time until 1.5 times the best of these."""
    lines = []
    for case in paper.unique(rows, "n_users", "n_items", "alpha"):
        own = paper.select(rows, **dict(zip(("n_users", "n_items", "alpha"), case, strict=True)))
        last = ends(own)
        times = time_to(own, 1.5 * min(distance for _, distance in last.values()))
        lines.append("N = {}, n = {}, alpha = {}".format(*case))
        for name, (seconds, distance) in last.items():
            soon = "never" if times[name] is None else f"{times[name]:.4f} s"
            lines.append(f"  {name:24} end {distance:6.1f} at {seconds:7.3f} s; near best: {soon}")
    return "\n".join(lines)


def draw(rows: list[paper.Row]) -> Figure:
    """A panel for each case: boxes of the distance over data sets, at the median time."""
    cases = paper.unique(rows, "n_users", "n_items", "alpha")
    title = "Started at the MAP, the exact chain has no burn-in; Pseudo-Mallows never gets as near"
    n_rows = (len(cases) + 1) // 2
    shape = (n_rows, min(len(cases), 2), 11, 1.1 + 3.2 * n_rows)
    figure, axes = paper.panels(rows, title, *shape, sharex=True, sharey=True)
    for panel, case in zip(axes.flat, cases, strict=True):
        own = paper.select(rows, **dict(zip(("n_users", "n_items", "alpha"), case, strict=True)))
        for name, colour in COLOURS.items():
            draw_boxes(panel, paper.select(own, method=name), paper.COLOURS[colour])
        panel.set_title("N = {}, n = {}, alpha = {:g}".format(*case))
    first = axes[0, 0]  # the others share its scales
    first.set_xscale("log")
    first.set_yscale("symlog", linthresh=10, linscale=0.5)
    first.set_ylim(bottom=0)
    first.set_yticks([tick for tick in TICKS if tick <= first.get_ylim()[1]])
    first.yaxis.set_major_formatter("{x:g}")
    for panel in axes[:, 0]:
        panel.set_ylabel("footrule distance to the truth")
    for panel in axes[-1]:
        panel.set_xlabel("computing time (seconds)")
    marks = [Patch(facecolor=paper.COLOURS[c], label=name) for name, c in COLOURS.items()]
    paper.legend_below(figure, marks)
    return figure


def draw_boxes(panel: paper.Axes, rows: list[paper.Row], colour: str) -> None:
    """One method: a box for each budget, and a line through the medians."""
    sizes = paper.unique(rows, "draws")
    groups = [paper.select(rows, draws=size) for size in sizes]
    times = np.array([np.median(paper.column(group, "seconds")) for group in groups])
    values = [paper.column(group, "distance") for group in groups]
    panel.boxplot(
        values,
        positions=times,
        widths=0.22 * times,
        manage_ticks=False,
        patch_artist=True,
        showfliers=False,
        boxprops={"facecolor": colour, "alpha": 0.55, "edgecolor": colour},
        medianprops={"color": "black", "linewidth": 1},
        whiskerprops={"color": colour},
        capprops={"color": colour},
    )
    panel.plot(times, [np.median(group) for group in values], color=colour, linewidth=1)


def main(arguments: list[str] | None = None) -> None:
    """Run and draw."""
    paper.main(__doc__, __file__, SETTINGS, run, draw, summarise, arguments)


if __name__ == "__main__":
    main()
