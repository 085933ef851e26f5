"""Reading ten million clicks into the sparse form: ours, polars and DuckDB, in one run.

Ours reads the file, and data frames of it by pandas (text, and categories), polars and pyarrow;
the seconds of a frame are those of `from_clicks`, its memory includes the frame. A folder of
Parquet files holds the rows `--parts` times, and a spreadsheet the answers of 500 people on 30
items. With `--old CHECKOUT`, another version of the package reads all of it, too.

Users and items are names (text). Each reader runs in a process of its own, so that the peak of its
memory is its own; figures are the best of `--repeats`. On a busy machine compare the seconds of all
processors, which add up its threads and do not count the time of others. The rivals do the same
work: names to codes by their own means, with the names sorted and as Python text, then the same
sparse table. Needs `pip install duckdb polars`; a rival that is not installed is left out.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from timing import print_table, words


def write_log(folder, n_rows, seed, has_numbers):
    """The log as CSV and Parquet; users and items are numbers, or text."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(seed)
    users = pa.array([f"user-{number:08x}" for number in range(n_rows // 10)])
    items = pa.array([f"article {number:05d}, part {number % 7}" for number in range(5000)])
    rows = {
        "user": users.take(pa.array(rng.integers(0, len(users), n_rows))),
        "item": items.take(pa.array((len(items) * rng.random(n_rows) ** 3).astype(np.int64))),
        "time": pa.array(rng.integers(0, 10**9, n_rows)),
    }
    if has_numbers:
        codes = {name: rows[name].dictionary_encode().indices for name in ("user", "item")}
        rows |= {name: places.cast(pa.int64()) for name, places in codes.items()}
    table = pa.table(rows)
    pyarrow.csv.write_csv(table, folder / "log.csv")
    pyarrow.parquet.write_table(table, folder / "log.parquet")


def write_answers(path, seed):
    """The ranks that 500 people give 30 items, as a spreadsheet."""
    import polars as pl

    rng = np.random.default_rng(seed)
    ranks = rng.permuted(np.tile(np.arange(1, 31), (500, 1)), axis=1)
    names = {"user": [f"user {number}" for number in range(500)]}
    pl.DataFrame(names | {f"item {n}": ranks[:, n] for n in range(30)}).write_excel(path)


def to_starts(rows, codes, n_items):
    ones, shape = np.ones(len(codes), dtype=bool), (int(rows.max()) + 1, n_items)
    table = csr_array((ones, (rows, codes)), shape=shape)
    table.sum_duplicates()
    return table.nnz


def by_us(source):
    import pseudomallows as pm

    if isinstance(source, str):
        found = pm.read(source)
        return len(found.codes) if found.kind == "clicks" else found.n_users
    return len(pm.Preferences.from_clicks(source).codes)


def pandas_frame(path):
    import pandas as pd

    return pd.read_parquet(path)


def pandas_categories(path):
    return pandas_frame(path).astype({"user": "category", "item": "category"})


def polars_frame(path):
    import polars as pl

    return pl.read_parquet(path)


def arrow_table(path):
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path)


FRAMES = {
    "ours, of pandas": pandas_frame,
    "ours, of categories": pandas_categories,
    "ours, of polars": polars_frame,
    "ours, of pyarrow": arrow_table,
}


def by_polars(path):
    import polars as pl

    columns = ["user", "item"]
    if path.endswith(".csv"):
        kind = dict.fromkeys(columns, pl.Categorical)
        frame = pl.read_csv(path, columns=columns, schema_overrides=kind)
    else:
        frame = pl.read_parquet(path, columns=columns).cast(pl.Categorical)
    codes, names = [], []
    for name in columns:
        known = frame[name].unique().cast(pl.String).sort()
        names.append(known.to_list())
        kind = pl.Enum(known)
        codes.append(frame[name].cast(pl.String).cast(kind).to_physical().to_numpy())
    return to_starts(codes[0], codes[1], len(names[1]))


def by_duckdb(path):
    import duckdb

    duckdb.sql(f"create table log as select user, item from '{path}'")
    for name in ("user", "item"):
        duckdb.sql(
            f"create table {name}s as "
            f"select {name}, row_number() over (order by {name}) - 1 as code "
            f"from (select distinct {name} from log)"
        )
    names = [
        duckdb.sql(f"select {name} from {name}s order by code").fetchall()
        for name in ("user", "item")
    ]
    found = duckdb.sql(
        "select users.code as row, items.code as code from log "
        "join users using (user) join items using (item)"
    ).fetchnumpy()
    return to_starts(found["row"], found["code"], len(names[1]))


READERS = {"ours": by_us, **dict.fromkeys(FRAMES, by_us)}
FEW = ("answers.xlsx", "parts")  # that only ours reads
READERS |= {"polars": by_polars, "DuckDB": by_duckdb}


def child(reader, path):
    """Read once; print seconds, those of all processors, peak memory, and clicks."""
    __import__({"polars": "polars", "DuckDB": "duckdb"}.get(reader, "pseudomallows"))
    __import__("pyarrow.parquet")
    source = FRAMES[reader](path) if reader in FRAMES else path
    started, busy = time.perf_counter(), time.process_time()
    n_clicks = READERS[reader](source)
    seconds, busy = time.perf_counter() - started, time.process_time() - busy
    print(seconds, busy, peak_memory(), n_clicks)


def peak_memory():
    """Of this process, in KB; what `resource` says would include the process it was forked from."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1])


def measure(reader, path, old, repeats):
    """The least of each figure, of so many processes; None if the reader cannot read this."""
    command = [sys.executable, __file__, "--child", reader, str(path)]
    where = None if old is None else {**os.environ, "PYTHONPATH": str(old.resolve() / "src")}
    runs = []
    for _ in range(repeats):
        done = subprocess.run(command, env=where, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            runs.append([float(value) for value in done.stdout.split()])
    if not runs:
        print(f"{reader}: {done.stderr.splitlines()[-1]}", file=sys.stderr)
        return None
    return [min(column) for column in zip(*runs, strict=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--numbers", action="store_true", help="users and items are numbers")
    parser.add_argument("--parts", type=int, default=0, help="Parquet files of a folder")
    parser.add_argument("--old", type=Path, help="a checkout of another version")
    parser.add_argument("--child", nargs=2)
    given = parser.parse_args()
    if given.child:
        child(*given.child)
        return
    with tempfile.TemporaryDirectory() as name:
        folder, rows = Path(name), []
        write_log(folder, given.rows, given.seed, given.numbers)
        write_answers(folder / "answers.xlsx", given.seed)
        files = ["log.csv", "log.parquet", "answers.xlsx"]
        if given.parts:
            (folder / "parts").mkdir()
            for number in range(given.parts):
                (folder / "parts" / f"{number}.parquet").symlink_to(folder / "log.parquet")
            files.append("parts")
        for file in files:
            size = os.path.getsize(folder / ("log.parquet" if file == "parts" else file))
            size *= given.parts if file == "parts" else 1
            for reader in READERS:
                if reader != "ours" and (file in FEW or (reader in FRAMES and file == "log.csv")):
                    continue
                olds = [given.old, None] if reader.startswith("ours") and given.old else [None]
                for old in olds:
                    done = measure(reader, folder / file, old, given.repeats)
                    if done is not None:
                        seconds, busy, peak, clicks = done
                        cells = [f"{size / 1e6:.0f} MB", words(seconds), words(busy)]
                        cells.append(f"{peak / 1e3:.0f} MB")
                        name = reader if old is None else f"{reader}, before"
                        rows.append([name, file, *cells, f"{clicks:,.0f}"])
        print_table(
            ["reader", "file", "size", "seconds", "of all processors", "peak", "clicks"], rows
        )


if __name__ == "__main__":
    main()
