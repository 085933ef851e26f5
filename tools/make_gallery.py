"""Draw the figures of the pages by the code on these pages: `python tools/make_gallery.py [PAGE]`.

They go into docs/figures/gallery. On a page, a figure stands before the code that draws it.
"""

import contextlib
import doctest
import re
import sys
import tempfile
from pathlib import Path

import matplotlib

import pseudomallows as pm

matplotlib.use("Agg")
DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = ["gallery.md", "start/clicks.md"]
FIGURE = re.compile(r"\((?:\.\./)?figures/gallery/(\w+\.svg)\)")


def parts_of(page):
    """The page in parts, each with the name of its figure, if it has one, and its code."""
    pieces = FIGURE.split(page)
    return list(zip([None, *pieces[1::2]], pieces[::2], strict=True))


def draw(page):
    """Run a page from top to bottom; what a part leaves as `ax` or `figure` is its figure."""
    names = {}
    for figure, text in parts_of((DOCS / page).read_text()):
        for example in doctest.DocTestParser().get_examples(text):
            exec(example.source, names)
        if figure is not None:
            drawn = names.pop("figure", None) or names.pop("ax")
            pm.plots.save(drawn, DOCS / "figures" / "gallery" / figure)


def main(pages):
    """Those that are named, or all, each in an empty folder, as they write files."""
    for page in pages or PAGES:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            draw(page)


if __name__ == "__main__":
    main(sys.argv[1:])
