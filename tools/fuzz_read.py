"""Feed the readers bytes that look for trouble: only a ValueError is an answer, or preferences.

Text is read both ways, by polars in small blocks and by the csv module: the answers must be the
same.

Needs `pip install atheris`; run, for instance, `python tools/fuzz_read.py -max_total_time=180`.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["pseudomallows", "csv"]):
    import pseudomallows as pm
    from pseudomallows.data import source, text
    from pseudomallows.data.columns import KINDS

NAMES = ("x.csv", "x.tsv", "x.soc", "x.toi", "x.cat", "x.npz", "x.parquet", "x.csv.gz", "x")
PLAIN_FRAME = text.plain_frame
FOLDER = Path(tempfile.mkdtemp())


def read_bytes(data: bytes) -> None:
    """One file of any kind."""
    if len(data) < 2:
        return
    path = FOLDER / NAMES[data[0] % len(NAMES)]
    kind = (None, *KINDS)[data[1] % (len(KINDS) + 1)]
    path.write_bytes(data[2:])
    text.plain_frame, source.BLOCK = lambda *_: None, 1 << 20
    answer = answer_of(path, kind)
    text.plain_frame, source.BLOCK = PLAIN_FRAME, 64 + data[1]
    again = answer_of(path, kind)
    if again != answer:
        raise RuntimeError(f"in blocks: {again}; at once: {answer}")


def answer_of(path: Path, kind: str | None) -> object:
    """What is read, or the error; anything else is a bug."""
    try:
        found = pm.read(path, kind)
    except ValueError as error:
        if str(path) not in str(error):
            raise RuntimeError("an error that does not name its file") from error
        return str(error)
    if found.n_users < 1 or found.n_items < 2:
        raise RuntimeError(f"wanted users and items, got {found}")
    cells = [array.tolist() for array in found.to_arrays().values()]
    return found.users.tolist(), found.items.tolist(), cells


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    atheris.Setup(sys.argv, read_bytes)
    atheris.Fuzz()
