"""The command line: one command per public function."""

import argparse
import sys
import time
from pathlib import Path

from ._version import __version__
from .datasets import simulate_rankings
from .files import write_whole
from .fit import fit
from .posterior import Posterior
from .rankings import footrule

DEMO_ITEMS = ["apricot", "banana", "cherry", "damson", "elderberry", "fig", "grape", "hazelnut"]
DEMO_ITEMS += ["kiwi", "lemon", "mango", "nectarine", "orange", "peach", "quince"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code: 0, 1 on bad input, 130 when interrupted."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (ValueError, TypeError, OSError) as error:
        print(f"pseudomallows: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("pseudomallows: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pseudomallows",
        description="Learn what people prefer, and how sure one can be of it.",
    )
    parser.add_argument("--version", action="version", version=f"pseudomallows {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="simulate rankings, learn their consensus, draw a picture",
        description="Simulate rankings of fruit, learn their consensus, save it with a picture.",
        epilog="example: pseudomallows demo --out demo --seed 1",
    )
    demo.add_argument("--out", default="demo", metavar="FOLDER", help="where to write (demo)")
    demo.add_argument("--seed", type=int, default=1, help="seed of the simulation and the fit (1)")
    demo.set_defaults(run=_demo)
    return parser


def _demo(options: argparse.Namespace) -> int:
    _say("Loading; the first time, the kernels are compiled, which takes some ten seconds ...")
    started = time.perf_counter()
    truth = simulate_rankings(n_users=60, n_items=len(DEMO_ITEMS), alpha=3, rng=options.seed)
    prefs = truth.preferences.rename(items=DEMO_ITEMS)
    posterior = fit(prefs, method="mcmc", rng=options.seed)
    _say(f"Fitted 60 rankings of {len(DEMO_ITEMS)} items in {time.perf_counter() - started:.1f} s.")

    print(f"{'consensus':<14}{'rank':>4}  {'95 % interval':>13}  {'mean':>5}")
    for row in posterior.summary():
        interval = f"{row['lowest']} to {row['highest']}"
        print(f"{row['item']:<14}{row['rank']:>4}  {interval:>13}  {row['mean']:>5.1f}")
    distance = footrule(posterior.point_consensus(), truth.consensus)
    low, high = _interval_of_alpha(posterior)
    print(f"alpha {posterior.alpha.mean():.2f} (95 % from {low:.2f} to {high:.2f}; the truth is 3)")
    print(f"distance from the true consensus: {distance}")

    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    posterior.save(folder / "posterior.pm")
    _draw_consensus(posterior, folder / "consensus.png")
    print(f"saved {folder / 'posterior.pm'} and {folder / 'consensus.png'}")
    return 0


def _interval_of_alpha(posterior: Posterior) -> tuple[float, float]:
    import numpy as np

    low, high = np.quantile(posterior.alpha, [0.025, 0.975])
    return float(low), float(high)


def _draw_consensus(posterior: Posterior, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from . import plots

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    plots.heat(posterior, ax=left)
    plots.intervals(posterior, ax=right)
    with write_whole(path) as stream:
        figure.savefig(stream, format="png", dpi=110)
    plt.close(figure)


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
