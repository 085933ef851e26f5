"""What comes next: the default fit against best sellers and EASE, and new users from the first
click on.

Retail (200 items, customers with 20 purchases or more) is cut at four dates, and by each user's
last ten clicks; msweb, if `--msweb FOLDER` has train.csv and test.csv, by three visits hidden at
random. Rivals are best sellers of all time and of the last 1, 7 and 30 days before the cut, and
EASE with the ridge of most hits on inner splits. Hits, and NDCG at 10 with its standard error;
stated and observed are those of `pm.evaluate`. Then 900 customers (60 items) are fitted and the
others replayed in time, some clicks given and the next three hidden; and how much of the lists
another seed changes. About five minutes of one core.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import pseudomallows as pm
from pseudomallows.evaluation.baselines import most_clicked
from pseudomallows.evaluation.evaluate import make_trial
from pseudomallows.evaluation.figures import scores_of
from timing import print_table

DAYS = (1, 7, 30)
GIVEN = (0, 1, 2, 3, 5, 8)
SEEDS = (1, 2, 3)


def judge(name, prefs, **how):
    """A row of the first table."""
    start = time.process_time()
    found = pm.evaluate(prefs, method="personal", rng=1, **how)
    seconds, bins = time.process_time() - start, found.calibration
    row = {"data": name, "split": how.get("share", how.get("split", "test"))}
    row["hits"] = f"{100 * found.accuracy:.1f}"
    row["EASE hits"] = f"{100 * found.baselines['EASE'].accuracy.value:.1f}"
    row["ours"] = f"{100 * found.scores.ndcg.value:.1f} ± {100 * found.scores.ndcg.error:.1f}"
    row["EASE"] = f"{100 * found.baselines['EASE'].ndcg.value:.1f}"
    row["all time"] = f"{100 * found.baselines['popularity'].ndcg.value:.1f}"
    row |= dict.fromkeys([f"{days} days" for days in DAYS], "")
    if prefs.times is not None:
        given = {name: value for name, value in how.items() if name in ("share", "hide")}
        row |= best_sellers(prefs, how["split"], **given)
    row["stated"] = f"{np.average(bins.stated, weights=bins.counts):.3f}"
    row["observed"] = f"{np.average(bins.observed, weights=bins.counts):.3f}"
    return row | {"ECE": f"{bins.error:.3f}", "CPU s": f"{seconds:.0f}"}


def best_sellers(prefs, split, hide=None, share=None):
    """NDCG of what was clicked most in the last days."""
    rng = np.random.default_rng(1)
    trial = make_trial(prefs, hide, None, split, rng, share=share)
    seen, hidden = trial.shown.take(trial.evaluated), trial.hidden.take(trial.evaluated)
    row, ever = {}, trial.shown.item_counts()
    for days in DAYS:
        is_late = trial.shown.times >= np.nanmax(trial.shown.times) - 86_400 * days
        counts = np.bincount(trial.shown.codes[is_late], minlength=prefs.n_items)
        items = most_clicked(seen, counts * (ever.max() + 1) + ever, trial.k, rng)
        row[f"{days} days"] = f"{100 * scores_of(items, hidden).ndcg.value:.1f}"
    return row


def replayed(prefs, n_fitted, in_time):
    """Stated and observed of new users with few clicks, and the sum over all unseen items: means
    over three divisions of the users, with how much the gaps of these differ."""
    found = {n_given: [] for n_given in GIVEN}
    for seed in SEEDS:
        order = np.random.default_rng(seed).permutation(prefs.n_users)
        fitted = pm.fit(prefs.take(np.sort(order[:n_fitted])), "personal", rng=seed)
        others = prefs.take(np.sort(order[n_fitted:]))
        for n_given in GIVEN:
            given, later = first_and_next(others, n_given, 3, in_time)
            everything = pm.recommend(fitted, prefs.n_items, clicks=given, window=3)
            best, stated = everything.items[:, :3], everything.probabilities
            hits = [
                [item in later[user] for item in row] for user, row in zip(given, best, strict=True)
            ]
            errors, sums = everything.errors[:, :3].mean(), np.nansum(stated, axis=1).mean()
            found[n_given].append((len(given), stated[:, :3].mean(), np.mean(hits), errors, sums))
    rows = []
    for n_given, figures in found.items():
        users, stated, observed, errors, sums = np.array(figures).T
        row = {"given": n_given, "users": int(users.mean()), "stated": f"{stated.mean():.3f}"}
        row["observed"] = f"{observed.mean():.3f} ± {(observed - stated).std(ddof=1):.3f}"
        rows.append(row | {"error stated": f"{errors.mean():.3f}", "sum": f"{sums.mean():.3f}"})
    return rows


def first_and_next(prefs, n_given, n_next, in_time):
    """The first clicks of each user, in time or in random order, and those that come next."""
    rng, given, later = np.random.default_rng(2), {}, {}
    for user in range(prefs.n_users):
        mine = slice(prefs.starts[user], prefs.starts[user + 1])
        ties = rng.random(mine.stop - mine.start)
        order = np.lexsort((ties, prefs.times[mine])) if in_time else np.argsort(ties)
        codes = prefs.codes[mine][order]
        if len(codes) >= n_given + n_next:
            given[user] = prefs.items[codes[:n_given]].tolist()
            later[user] = set(codes[n_given : n_given + n_next].tolist())
    return given, later


def overlap(prefs):
    """The share of the ten best items of a user that another seed leaves in the list."""
    lists = [pm.recommend(pm.fit(prefs, "personal", rng=seed), 10).items for seed in (1, 2)]
    pairs = zip(*lists, strict=True)
    return float(np.mean([len(np.intersect1d(one, other)) / 10 for one, other in pairs]))


def show(rows):
    print_table(list(rows[0]), [[str(cell) for cell in row.values()] for row in rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--msweb", type=Path)
    options = parser.parse_args()
    retail = pm.datasets.online_retail(200, 20)
    rows = [judge("retail", retail, split="time", share=share) for share in (0.1, 0.2, 0.3, 0.4)]
    rows.append(judge("retail", retail, split="last", hide=10))
    rows.append(judge("retail", retail, split="random", hide=10))
    if options.msweb:
        train, test = (pm.read(options.msweb / f"{part}.csv") for part in ("train", "test"))
        rows.append(judge("msweb", train, test=test, k=3))
    show(rows)
    print("retail, new customers replayed in time")
    show(replayed(pm.datasets.online_retail(60, 8), 900, True))
    if options.msweb:
        print("msweb, new users in random order")
        show(replayed(train, 3200, False))
        print(f"lists of msweb with another seed: {overlap(train):.0%} the same")
    print(f"lists of retail with another seed: {overlap(retail):.0%} the same")


if __name__ == "__main__":
    main()
