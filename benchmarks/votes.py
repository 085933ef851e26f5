"""A leaderboard from a million votes, against libraries for ratings: seconds, intervals, log loss.

Votes of simulated people on pairs of 100 models, by Bradley and Terry's law (the rivals' own), all
pairs as often (`--skew 0`), or some models far more often than others (`--skew 1`). Of each
library: CPU seconds from columns of names in memory to 95 % intervals of the ranks, the share of
models whose interval holds their rank, its mean width, and the log loss of votes that it has not
seen.

Rivals: evalica (100 resamples), arena-rank (sandwich), choix (no intervals); those that are not
installed are left out. A rank's interval, where a library has intervals of ratings only: at best
behind those whose whole interval is above, at worst behind all that overlap.

Tried and left out, of 50,000 votes with some models compared more often: a likelihood of a third of
its weight covers 0.81, and Kendall's law of resampled votes 0.77, since the order itself is off.

    .venv/bin/python benchmarks/votes.py --votes 1000000 --models 100 --skew 0 --repeats 2
"""

import importlib
import resource
import time

import numpy as np
from scipy.special import expit

import pseudomallows as pm
from pseudomallows.distances.vote_tally import pair_probabilities
from timing import arguments, print_table

N_TEST, N_RESAMPLES = 200_000, 100


def simulate(n_models, n_votes, skew, rng):
    """Strengths, and columns of codes: winner, loser."""
    strengths = rng.normal(size=n_models)
    popularity = (rng.gamma(1.0, size=n_models) + 0.1) ** skew
    one, other = np.triu_indices(n_models, 1)
    asked = popularity[one] * popularity[other]
    chosen = rng.choice(len(one), n_votes + N_TEST, p=asked / asked.sum())
    one, other = one[chosen], other[chosen]
    first = rng.random(len(one)) < expit(strengths[one] - strengths[other])
    return strengths, np.where(first, one, other), np.where(first, other, one)


def ours(names, better, worse, gaps):
    prefs = pm.Preferences.from_pairs({"better": names[better], "worse": names[worse]}, items=names)
    posterior = pm.fit(prefs, "mcmc", distance="kendall", rng=1, gaps=gaps)
    if posterior.settings["votes"]["gaps"] == "free":
        strengths = np.array(posterior.settings["votes"]["strengths"])
        probabilities = expit(np.subtract.outer(strengths, strengths))
    else:
        draws = posterior.consensus[:, :, 0].reshape(-1, len(names))[::20]
        alphas = posterior.alpha.ravel()[::20] / len(names)
        found = [pair_probabilities(*each) for each in zip(draws, alphas, strict=True)]
        probabilities = np.mean(found, axis=0)
    low, high = posterior.intervals().T
    return low, high, probabilities


def by_overlap(low, high):
    """Ranks at best and at worst, from intervals of ratings."""
    return 1 + (low[None] > high[:, None]).sum(axis=1), (high[None] >= low[:, None]).sum(axis=1)


def evalica(names, better, worse):
    """A row for each winner and loser, weighted; votes drawn again are other weights, which needs
    far less memory than the library's own bootstrap."""
    library = importlib.import_module("evalica")
    cells, counts = np.unique(better * len(names) + worse, return_counts=True)
    rows = [names[code].tolist() for code in divmod(cells, len(names))]
    winners, rng, n_votes = [library.Winner.X] * len(cells), np.random.default_rng(1), len(better)

    def scores_of(weights):
        found = library.bradley_terry(*rows, winners, weights=weights.tolist())
        return np.log(found.scores[names.tolist()].to_numpy())

    again = [scores_of(rng.multinomial(n_votes, counts / n_votes)) for _ in range(N_RESAMPLES)]
    ranks = np.argsort(np.argsort(-np.array(again), axis=1), axis=1) + 1
    low, high = np.percentile(ranks, [2.5, 97.5], axis=0)
    scores = scores_of(counts)
    return np.floor(low), np.ceil(high), expit(np.subtract.outer(scores, scores))


def arena_rank(names, better, worse):
    import pandas

    models = importlib.import_module("arena_rank.models.bradley_terry")
    data = importlib.import_module("arena_rank.utils.data_utils")
    columns = {"model_a": names[better], "model_b": names[worse], "winner": "model_a"}
    dataset = data.PairDataset.from_pandas(pandas.DataFrame(columns))
    model = models.BradleyTerry(len(dataset.competitors))
    found = model.compute_ratings_and_cis(dataset)
    order = np.argsort(dataset.competitors)  # the names are sorted
    low, high = (np.asarray(found[name])[order] for name in ("rating_lower", "rating_upper"))
    scores = np.asarray(model.params["ratings"])[order]
    return *by_overlap(low, high), expit(np.subtract.outer(scores, scores))


def choix(names, better, worse):
    library = importlib.import_module("choix")
    wins = np.zeros((len(names), len(names)))
    np.add.at(wins, (better, worse), 1)
    scores = library.ilsr_pairwise_dense(wins, alpha=1e-6)
    none = np.full(len(names), np.nan)
    return none, none, expit(np.subtract.outer(scores, scores))


RIVALS = {
    "pseudomallows": lambda *data: ours(*data, "auto"),
    "pseudomallows, equal gaps": lambda *data: ours(*data, "equal"),
    "evalica": evalica,
    "arena-rank": arena_rank,
    "choix": choix,
}


def cpu():
    """CPU seconds of this process and of those it started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def main():
    options = arguments(__doc__, votes=1_000_000, models=100, skew=0.0, repeats=2)
    names = np.array([f"model {number:03}" for number in range(options.models)])
    found = {name: [] for name in RIVALS}
    for seed in range(options.repeats):
        strengths, better, worse = simulate(
            options.models, options.votes, options.skew, np.random.default_rng(seed)
        )
        truth = np.argsort(np.argsort(-strengths)) + 1
        train, test = slice(0, options.votes), slice(options.votes, None)
        for name, run in list(RIVALS.items()):
            if name not in found:
                continue
            started = cpu()
            try:
                low, high, probabilities = run(names, better[train], worse[train])
            except ModuleNotFoundError as error:
                print(f"{name} is left out: {error}")
                found.pop(name)
                continue
            holds = np.where(np.isnan(low), np.nan, (low <= truth) & (truth <= high))
            loss = -np.log(probabilities[better[test], worse[test]]).mean()
            found[name].append([cpu() - started, holds.mean(), (high - low + 1).mean(), loss])
    rows = []
    for name, values in found.items():
        _, holds, width, loss = np.mean(values, axis=0)
        fastest = np.min(values, axis=0)[0]
        shown = ["", ""] if np.isnan(holds) else [f"{holds:.3f}", f"{width:.2f}"]
        rows.append([name, f"{fastest:.1f}", *shown, f"{loss:.5f}"])
    print(f"{options.votes:,} votes on {options.models} models, skew {options.skew:g}")
    print_table(["library", "CPU s", "holds the rank", "width", "log loss"], rows)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main()
