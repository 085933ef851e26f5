"""Draw the figures of docs/gallery.md by the code on that page, into docs/figures/gallery."""

import doctest
import re
from pathlib import Path

import matplotlib

import pseudomallows as pm

matplotlib.use("Agg")
DOCS = Path(__file__).parent.parent / "docs"
FIGURE = re.compile(r"\(figures/gallery/(\w+\.svg)\)")


def parts_of(page):
    """The page in parts, each with the name of its figure, if it has one, and its code."""
    pieces = FIGURE.split(page)
    return list(zip([None, *pieces[1::2]], pieces[::2], strict=True))


def main():
    """Run the page from top to bottom; what a part leaves as `ax` or `figure` is its figure."""
    names = {}
    for figure, text in parts_of((DOCS / "gallery.md").read_text()):
        for example in doctest.DocTestParser().get_examples(text):
            exec(example.source, names)
        if figure is not None:
            drawn = names.pop("figure", None) or names.pop("ax")
            pm.plots.save(drawn, DOCS / "figures" / "gallery" / figure)


if __name__ == "__main__":
    main()
