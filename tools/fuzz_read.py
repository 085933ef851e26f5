"""Feed the readers bytes that look for trouble: only a ValueError is an answer, or preferences.

Needs `pip install atheris`; run, for instance, `python tools/fuzz_read.py -max_total_time=180`.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(
    include=["pseudomallows", "csv"], exclude=["pseudomallows.kernels"]
):
    import pseudomallows as pm
    from pseudomallows.read import KINDS

NAMES = ("x.csv", "x.tsv", "x.soc", "x.toi", "x.npz", "x.parquet", "x.csv.gz", "x")
FOLDER = Path(tempfile.mkdtemp())


def read_bytes(data: bytes) -> None:
    """One file of any kind."""
    if len(data) < 2:
        return
    path = FOLDER / NAMES[data[0] % len(NAMES)]
    kind = (None, *KINDS)[data[1] % (len(KINDS) + 1)]
    path.write_bytes(data[2:])
    try:
        found = pm.read(path, kind, ties="random", rng=1, quiet=True)
    except ValueError as error:
        if str(path) not in str(error):
            raise RuntimeError("an error that does not name its file") from error
        return
    if found.n_users < 1 or found.n_items < 2:
        raise RuntimeError(f"wanted users and items, got {found}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    atheris.Setup(sys.argv, read_bytes)
    atheris.Fuzz()
