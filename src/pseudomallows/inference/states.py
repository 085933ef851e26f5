"""The state of one consensus: what a sweep changes, by the laws of the paper."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..distributions.pseudo import PseudoMallows
from ..files.saved import Saved
from ..latent.clicks import ClickLatent, PseudoDraw, Source
from ..latent.expected_counts import ExpectedDraw, GroupTables, check_tables
from ..latent.population import Counts, Draw, ExactDraw, Latent, Ranking, finish_draws
from ..rankings import MAX_ALPHA, rank_randomly

MAX_SWEEPS = 2**50  # nobody can make so many
N_CANDIDATES = 20  # among which a sweep of "balanced" chooses


class State(ABC):
    """A consensus and its alpha; a sweep moves them, given what is known of the users.

    The steps of a sweep stand apart, so that those of several clusters can go side by side.
    """

    costs: Counts | None = None  # of the latest latent rankings
    source: Source  # of the latest latent rankings
    n_alpha_moves = 1
    lowest_alpha = 0.0

    def __init__(self, latent: Latent, consensus: Ranking, alpha: float, rng: np.random.Generator):
        self.latent, self.consensus, self.alpha, self.rng = latent, consensus, alpha, rng
        self.seed = int(rng.integers(2**63))
        self.n_sweeps = 0
        self.log_likelihood: float | None = None  # of what is known of the users, if it is known

    def to_save(self) -> dict[str, Any]:
        """What a checkpoint keeps between two sweeps; all else is made anew in a sweep."""
        return {
            "consensus": self.consensus.copy(),
            "alpha": float(self.alpha),
            "seed": self.seed,
            "n_sweeps": self.n_sweeps,
            "log_likelihood": self.log_likelihood,
            "rng": self.rng.bit_generator.state,
        }

    def resume(self, saved: Saved) -> None:
        """Go on from there."""
        self.consensus = saved.rankings("consensus", (self.latent.n_items,))
        self.alpha = saved.number("alpha", self.lowest_alpha, MAX_ALPHA)
        self.seed = saved.count("seed", 0, 2**63 - 1)
        self.n_sweeps = saved.count("n_sweeps", 0, MAX_SWEEPS)
        self.log_likelihood = saved.number_or_none("log_likelihood")
        self.rng = saved.generator("rng")

    def sweep(self, adapt: bool) -> None:
        """Alpha given the consensus, latent rankings given both, consensus given the latent."""
        self.n_sweeps += 1
        for _ in range(self.n_alpha_moves):
            tries = self.alphas_to_try()
            values = [self.latent.log_likelihood(self.consensus, alpha) for alpha in tries]
            if values:
                self.judge_alphas(values, adapt)
        self.costs = self.latent.known_costs if self.latent.is_full else self.draw_costs()
        self.move(self.costs)

    def alphas_to_try(self) -> list[float]:
        """The alphas whose likelihood the next step of alpha needs; none, if alpha is fixed."""
        return []

    def judge_alphas(self, values: list[float], adapt: bool) -> None:
        """Move alpha, given these log likelihoods."""
        raise NotImplementedError

    def log_prior(self, alpha: float) -> float:
        """Log prior density of alpha, if it is sampled."""
        return 0.0

    def draw_costs(self) -> Counts:
        """Draw the latent rankings; return their costs."""
        self._note_source(None)
        return self.latent.draw(self.consensus, self.alpha, self.seed, self.n_sweeps)

    def begin_draw(self) -> Draw:
        """Begin to draw the latent rankings, the blocks of rows still to be run."""
        self._note_source(None)
        return ExactDraw(self.latent, self.consensus, self.alpha, self.seed, self.n_sweeps)

    def wander(self) -> None:
        """A move without any users: the consensus anywhere."""
        self.n_sweeps += 1
        self.consensus = rank_randomly(np.zeros(self.latent.n_items), self.rng)
        self._note_source(None)

    def _note_source(self, order: str | None) -> None:
        consensus = self.consensus.copy()
        self.source = Source(consensus, self.alpha, self.seed, self.n_sweeps, order)

    @abstractmethod
    def move(self, costs: Counts) -> None:
        """Move the consensus, given the costs."""

    def latent_of(self, users: Any) -> Ranking:
        """The latest latent rankings of some users of clicks."""
        assert isinstance(self.latent, ClickLatent)
        return self.latent.latent_of(users, self.source)

    def log_posterior(self) -> float:
        """Log posterior density, where it is known."""
        return float("nan")


@dataclass(frozen=True)
class PseudoOptions:
    """How the consensus is drawn from a Pseudo-Mallows law; see :func:`pseudomallows.fit`."""

    balanced: bool
    weighted: bool
    sigma: float
    order: str | None  # of the paper's law of latent rankings; None: they are drawn exactly
    update: str = "sampled"  # or "expected": the counts of latent rankings, not drawn but expected


class PseudoState(State):
    """The consensus is drawn from its Pseudo-Mallows law; for clicks this is Algorithm 5."""

    def __init__(
        self,
        latent: Latent,
        consensus: Ranking,
        alpha: float,
        options: PseudoOptions,
        rng: np.random.Generator,
    ):
        super().__init__(latent, consensus, alpha, rng)
        self._options = options
        self._tables: GroupTables | None = None

    def begin_draw(self) -> Draw:
        """Begin to draw the latent rankings: by the paper's law, or exactly."""
        order = self._options.order
        if order is None:
            return super().begin_draw()
        self._note_source(order)
        if self._options.update == "expected":
            return self._expect(order)
        return PseudoDraw(self.latent, self.consensus, self.alpha, self.seed, self.n_sweeps, order)

    def _expect(self, order: str) -> Draw:
        """Expected counts, by tables that are kept while alpha stays."""
        lam = self.alpha / self.latent.n_items
        if self._tables is None or self._tables.lam != lam:
            sizes, n_items = self.latent.click_sizes, self.latent.n_items
            check_tables(sizes.sizes, n_items)
            self._tables = GroupTables(lam, order, sizes, n_items)
            self._tables.make()
        return ExpectedDraw(self.latent, self.consensus, self._tables)

    def draw_costs(self) -> Counts:
        """Draw the latent rankings; return their costs."""
        return finish_draws([self.begin_draw()], self.latent.executor)[0]

    def move(self, costs: Counts) -> None:
        """Draw the consensus, or choose by weight among draws, which is exact."""
        options = self._options
        law = PseudoMallows.from_costs(costs, self.alpha, options.sigma, options.balanced)
        if options.weighted:
            self.consensus = law.redraw(self.consensus, N_CANDIDATES, self.rng).copy()
        else:
            self.consensus = law.draw(1, self.rng)[0]
