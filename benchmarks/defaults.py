"""What a call without options gives, before and after "auto": accuracy and calibration, by split.

"before" is what a plain `fit` of clicks did up to version 0.1, `method="pseudo"`; "after" is the
default of `evaluate`; "plain" is a fit that learns for clicks hidden at random, though there are
times. Retail has the dates of its purchases, so that clicks can be hidden at random, the last
ones of each user, or all after a date; with `--msweb FOLDER` (train.csv and test.csv, columns user
and item) also msweb, whose clicks have no times. Then the first places of rankings, if
`--rankings FILE` has some. CPU seconds.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

import pseudomallows as pm
from pseudomallows.evaluation.evaluate import evaluate
from timing import print_table

SPLITS = {"random": {"hide": 10}, "last": {"hide": 10}, "time": {}}
WAYS = {"before": {"method": "pseudo"}, "after": {}}
PLAIN = {"method": "personal", "calibrate": "random"}
CUT = {"method": "personal", "calibrate": "cut"}


def judge(prefs, seed, how, **split):
    """The figures of one evaluation."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = evaluate(prefs, rng=seed, **how, **split)
    bins = found.calibration
    return {
        "accuracy": f"{found.accuracy:.1%} ± {found.accuracy_error:.1%}",
        "popularity": f"{found.popularity:.1%}",
        "EASE": f"{found.baselines['EASE'].accuracy.value:.1%}",
        "stated": f"{np.average(bins.stated, weights=bins.counts):.3f}",
        "observed": f"{np.average(bins.observed, weights=bins.counts):.3f}",
        "ECE": f"{bins.error:.3f}",
        "users": found.n_users,
        "CPU s": f"{time.process_time() - start:.0f}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--msweb", type=Path)
    parser.add_argument("--rankings", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows, retail = [], pm.datasets.online_retail(200, 20)
    calls = [(split, name) for split in SPLITS for name in WAYS]
    others = {("random", "plain"): PLAIN, ("time", "calibrate='cut'"): CUT}
    for split, name in [*calls, *others]:
        how = WAYS.get(name) if name in WAYS else others[split, name]
        found = judge(retail, options.seed, how, split=split, **SPLITS[split])
        rows.append({"data": "retail", "split": split, "fit": name} | found)
    if options.msweb:
        train, test = (pm.read(options.msweb / f"{part}.csv") for part in ("train", "test"))
        for name, how in (WAYS | {"plain": PLAIN}).items():
            found = judge(train, options.seed, how, test=test, k=3)
            rows.append({"data": "msweb", "split": "random", "fit": name} | found)
    print_table(list(rows[0]), [[str(cell) for cell in row.values()] for row in rows])
    if options.rankings:
        for name, method in (("before", "pseudo"), ("after", "auto")):
            posterior = pm.fit(pm.read(options.rankings), method, rng=options.seed)
            first = posterior.summary()[:3]
            words = ", ".join(f"{row['item']} {row['lowest']} to {row['highest']}" for row in first)
            print(f"{name}: {posterior.settings['method']}: {words}")


if __name__ == "__main__":
    main()
