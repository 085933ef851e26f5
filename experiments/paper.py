"""What the scripts that redo the figures and tables of the paper share.

A script has a name, settings, a `run` that makes rows from a setting and a seed, and a `draw` that
makes a figure from these rows alone. `main` does the rest: options, the CSV file, the picture.

    SETTINGS = paper.Settings(reduced={...}, full={...}, smallest={...})

    def main(arguments=None):
        paper.main(__doc__, __file__, SETTINGS, run, draw, summarise, arguments)
"""

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import pseudomallows as pm
from pseudomallows.engines.progress import shown

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "paper"
SEED = 20_220_520

# Okabe and Ito's colours, which colour-blind people can tell apart; black is for text and truth.
COLOURS = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "red": "#D55E00",
    "sky": "#56B4E9",
    "pink": "#CC79A7",
    "yellow": "#F0E442",
    "black": "#000000",
}
CYCLE = ["blue", "orange", "green", "red", "sky", "pink", "black"]  # yellow is hard to see
HEAT = "Blues"  # the one colour map: white is 0, dark is much
STYLE: dict[str, Any] = {
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "savefig.dpi": 100,
    "svg.fonttype": "none",  # text that one can select
    "svg.hashsalt": "pseudomallows",
}
# What a file would say of its time and its maker: without it, the same table is the same file.
FORMATS: dict[str, dict[str, str | None]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
ABOUT = {"png": "Description", "svg": "Description", "pdf": "Subject"}  # where it says what made it

Array = NDArray[Any]
Row = dict[str, Any]
Run = Callable[[dict[str, Any], int], list[Row]]
Draw = Callable[[list[Row]], Figure]


@dataclass(frozen=True)
class Settings:
    """What `run` gets: about a minute of work, the full setting, and seconds for tests.

    The full setting is the paper's where it prints one, and ours elsewhere.
    """

    reduced: dict[str, Any]
    full: dict[str, Any]
    smallest: dict[str, Any]


def main(
    doc: str,
    file: str,
    settings: Settings,
    run: Run,
    draw: Draw,
    summarise: Callable[[list[Row]], str] | None = None,
    arguments: list[str] | None = None,
    parents: Sequence[argparse.ArgumentParser] = (),
) -> None:
    """Run into NAME.csv, then draw NAME.png (or .svg, .pdf) from it; NAME is the script's."""
    name = Path(file).stem
    options = parse(doc, arguments, parents)
    table, picture = options.out / f"{name}.csv", options.out / f"{name}.{options.format}"
    if not options.draw_only:
        start = time.perf_counter()
        rows = run(getattr(settings, options.setting), options.seed)
        write_rows(rows, table, options.seed, options.setting)
        print(f"{name}: {time.perf_counter() - start:.0f} s, {options.setting} setting -> {table}")
    rows = read_rows(table)
    if summarise is not None:
        print(summarise(rows))
    save(draw, rows, picture)
    print(f"{name}: figure -> {picture}")


def parse(
    doc: str,
    arguments: list[str] | None = None,
    parents: Sequence[argparse.ArgumentParser] = (),
) -> argparse.Namespace:
    """The options that all scripts share, and those of `parents`."""
    parser = argparse.ArgumentParser(
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=list(parents),
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the table and the figure")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of all random numbers ({SEED})")
    size = parser.add_mutually_exclusive_group()
    for setting, words in {
        "full": "the paper's setting where it prints one, ours elsewhere: slow",
        "smallest": "a few seconds, for tests",
    }.items():
        size.add_argument(
            f"--{setting}",
            dest="setting",
            action="store_const",
            const=setting,
            default="reduced",
            help=words,
        )
    parser.add_argument(
        "--draw-only", action="store_true", help="only draw the figure, from the table as it is"
    )
    parser.add_argument(
        "--format", choices=FORMATS, default="png", help="of the figure (%(default)s)"
    )
    return parser.parse_args(arguments)


def each(*lists: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """All combinations, the last list fastest; a terminal shows how many are done."""
    combinations = list(product(*lists))
    with shown(None, Path(sys.argv[0]).stem) as progress:
        for done, combination in enumerate(combinations):
            progress(done, len(combinations))
            yield combination


def write_rows(rows: Iterable[Row], path: Path, seed: int, setting: str) -> None:
    """Write the CSV file, whole or not at all, with the seed, the version and the setting."""
    shared = {"version": pm.__version__, "seed": seed, "setting": setting}
    rows = [shared | row for row in rows]
    columns = dict.fromkeys(column for row in rows for column in row)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    try:
        with unfinished.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(columns), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_rows(path: Path) -> list[Row]:
    """Read the CSV file; what looks like a number is one, an empty cell is None."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: _value(text) for name, text in row.items()} for row in csv.DictReader(file)]


def _value(text: str) -> Any:
    """A cell: an int, else a float, else the text itself; None where it is empty."""
    if not text:
        return None
    for kind in (int, float):
        with suppress(ValueError):  # text such as "mcmc" is no number, and stays as it is
            return kind(text)
    return text


def select(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """The rows that have these values: `select(rows, n_items=9, method="pseudo")`."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def unique(rows: Iterable[Row], *names: str) -> list[Any]:
    """The values of a column, or tuples of several, each once, in the order of the rows."""
    if len(names) == 1:
        return list(dict.fromkeys(row[names[0]] for row in rows))
    return list(dict.fromkeys(tuple(row[name] for name in names) for row in rows))


def column(rows: Iterable[Row], name: str) -> Array:
    """One column as an array."""
    return np.array([row[name] for row in rows])


def table_rows(table: Array, names: tuple[str, str], value: str, **shared: Any) -> list[Row]:
    """A matrix as rows, indices from 1: `table_rows(p, ("item", "rank"), "probability", ...)`."""
    first, second = names
    return [
        shared | {first: i + 1, second: j + 1, value: float(table[i, j])}
        for i, j in np.ndindex(*table.shape)
    ]


def table_of(rows: Iterable[Row], names: tuple[str, str], value: str) -> Array:
    """The matrix of `table_rows` again."""
    rows = list(rows)
    first, second = names
    table = np.full((max(row[first] for row in rows), max(row[second] for row in rows)), np.nan)
    for row in rows:
        table[row[first] - 1, row[second] - 1] = row[value]
    return table


def panels(
    rows: list[Row],
    title: str,
    n_rows: int = 1,
    n_columns: int = 1,
    width: float | None = None,
    height: float | None = None,
    **options: Any,
) -> tuple[Figure, Array]:
    """A figure with its message on top and what made it below; `axes[row, column]`."""
    width = min(2.2 + 2.9 * n_columns, 11) if width is None else width
    height = 0.9 + 2.7 * n_rows if height is None else height
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, fontsize=12.5, fontweight="bold", x=0.01, ha="left")
    figure.supxlabel(made_by(rows), fontsize=8, color="0.35", x=0.99, ha="right")
    axes = figure.subplots(n_rows, n_columns, squeeze=False, **options)
    for panel in axes.flat:
        panel.set_prop_cycle(color=[COLOURS[name] for name in CYCLE])
    return figure, axes


def legend_below(figure: Figure, marks: Sequence[Any]) -> None:
    """One legend for all panels, in a line."""
    shape = {"ncols": len(marks), "columnspacing": 1.2, "handlelength": 1.6}
    figure.legend(handles=marks, loc="outside lower left", **shape)


def made_by(rows: list[Row]) -> str:
    """The setting, the seed and the version behind a table."""
    row = rows[0]
    return f"{row['setting']} setting, seed {row['seed']}, pseudomallows {row['version']}"


def heat(
    panel: Axes,
    table: Array,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    highest: float | None = None,
) -> Any:
    """A heat plot of `table[x, y]`, both from 1, y upwards, from 0 to `highest`."""
    x, y = (np.arange(size + 1) + 0.5 for size in table.shape)
    mesh = panel.pcolormesh(x, y, table.T, cmap=HEAT, vmin=0, vmax=highest, rasterized=True)
    panel.set(title=title, xlabel=xlabel, ylabel=ylabel)
    whole(panel, "xy")
    for side in ("top", "right"):
        panel.spines[side].set_visible(True)
    return mesh


def whole(panel: Axes, which: str = "x") -> None:
    """Ticks at whole numbers only."""
    for letter in which:
        getattr(panel, f"{letter}axis").set_major_locator(MaxNLocator(6, integer=True))


def save(draw: Draw, rows: list[Row], path: Path) -> None:
    """Draw with the shared style, without a display; the name ends in the format. A PNG has 256
    colours, which halves the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context(STYLE):
        figure, kind = draw(rows), path.suffix.removeprefix(".")
        about = {ABOUT[kind]: made_by(rows)}
        if kind != "png":
            figure.savefig(path, metadata=FORMATS[kind] | about)
            return
        drawn, words = BytesIO(), PngInfo()
        figure.savefig(drawn)
        words.add_text(*next(iter(about.items())))
        with Image.open(drawn) as picture:
            few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        few.save(path, pnginfo=words, optimize=True)
