"""Read mutated files by two checkouts of the package, and show where their answers differ.

Each file is a seed below with up to four changes: a byte, a piece, an end cut off, a line twice.
Run, for instance, `python tools/compare_readers.py ../old . --files 3000`.
"""

import argparse
import gzip
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

ROWS = "".join(f"u{n % 7},i{n % 5},{n * 977 + 10**9},{n % 5}\n" for n in range(30))
LOG = "user,item,time,rating\n" + ROWS
NAMES = "".join(f"# ALTERNATIVE NAME {n}: {'_abc'[n]}\n" for n in (1, 2, 3))
SEEDS = {
    "log.csv": LOG,
    "dates.csv": 'user;item;date\n"a";"tea, hot";2024-05-31\nbob;ale;2024-05-31 09:00\na;ale;\n',
    "u.data": "".join(f"{n % 5}\t{n % 4}\t{n % 5 + 1}\t{881250949 + n}\n" for n in range(20)),
    "ratings.dat": "".join(f"{n % 5}::{n % 4}::{n % 5 + 1}::{978300760 + n}\n" for n in range(20)),
    "x.inter": "user_id:token\titem_id:token\trating:float\n1\t2\t3\n2\t1\t4\n2\t2\t5\n",
    "wide.csv": "user,ale,gin,rum\nann,1,2,3\nbob,3,,1\neve,1,2.5,2.5\n",
    "german.csv": "Nutzer;ä;ö;ü\nann;1,5;1,5;3\nbob;1;2;3\n",
    "clicks.csv": "user,a,b,c\nx,1,0,1\ny,0,,1\n",
    "places.csv": "user,1st,2nd,3rd\nann,rum,ale,gin\nbob,ale,rum\n",
    "ranks.csv": "user,item,rank\nann,ale,1\nann,gin,2\nbob,gin,1\nbob,ale,2\n",
    "votes.csv": "model_a,model_b,winner,n\nx,y,model_a,2\ny,z,tie,1\nx,z,b,3\n",
    "pairs.csv": "user,better,worse\nann,tea,ale\nbob,ale,tea\n",
    "shown.csv": "user,session,item,clicked\nu,1,a,1\nu,1,b,0\nv,2,c,0\nv,2,a,yes\n",
    "x.soc": f"{NAMES[: 2 * len(NAMES) // 3]}# NUMBER VOTERS: 3\n2: 1,2\n1: 2,1\n",
    "x.toi": f"{NAMES}2: 1,{{2,3}}\n1: 2\n",
}
PIECES = [
    '"',
    ",",
    ";",
    "\t",
    "\n",
    "\r\n",
    "\r",
    "::",
    " ",
    "0",
    "-1",
    "1,5",
    "NA",
    "é",
    "\x00",
    "\xff",
    '""',
]
PIECES += [
    "2024-05-31",
    "user",
    "item",
    "u0",
    "1e9",
    "nan",
    "\u3000",
    "yes",
    "rank1",
    "{",
    "\n\n",
    ",,,,",
]


def seeds() -> dict[str, bytes]:
    """Files that every version reads."""
    import numpy as np
    import pandas as pd

    files = {name: text.encode() for name, text in SEEDS.items()}
    files["log.csv.gz"] = gzip.compress(LOG.encode())
    files["log16.csv"] = LOG.encode("utf-16")
    for name, text in (("log.parquet", LOG), ("wide.parquet", SEEDS["wide.csv"])):
        stream = io.BytesIO()
        pd.read_csv(io.StringIO(text)).to_parquet(stream)
        files[name] = stream.getvalue()
    stream = io.BytesIO()
    np.savez(stream, rankings=np.array([[1, 2, 3], [2, 1, 3]]))
    files["x.npz"] = stream.getvalue()
    return files


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The bytes with some changes."""
    for _ in range(rng.randint(0, 4)):
        place, kind = rng.randrange(len(content) + 1), rng.randrange(5)
        if kind == 0:
            content = content[:place] + rng.choice(PIECES).encode() + content[place:]
        elif kind == 1:
            content = content[:place] + content[place + rng.choice((1, 1, 3, 20)) :]
        elif kind == 2:
            content = content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]
        elif kind == 3 and rng.random() < 0.3:
            content = content[:place]
        else:
            lines = content.split(b"\n")
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            content = b"\n".join(lines)
    return content


def answers(folder: Path) -> None:
    """What this version says of each file, as lines of JSON."""
    import pseudomallows as pm

    for path in sorted(folder.iterdir()):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                found = pm.read(path)
                answer = [found.kind, found.users.tolist(), found.items.tolist()]
                arrays = (array.tolist() for array in found.to_arrays().values())
                answer += sorted(arrays, key=str)  # a version may name them otherwise
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a panic of compiled code is no Exception
                answer = f"{type(error).__name__}: {error}"
        words = sorted(f"{entry.category.__name__}: {entry.message}" for entry in said)
        text = json.dumps([path.name, answer, words]).replace(str(folder), "")
        sys.stdout.write(text + "\n")


def main() -> None:
    """Make the files, ask both, and count."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkouts", nargs=2, type=Path, help="the old one and the new one")
    parser.add_argument("--files", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.folder:
        answers(given.folder)
        return
    rng, files = random.Random(given.seed), seeds()
    with tempfile.TemporaryDirectory() as name:
        for number in range(given.files):
            seed = list(files)[number % len(files)]
            (Path(name) / f"{number:05}-{seed}").write_bytes(mutated(files[seed], rng))
        said = []
        for checkout in given.checkouts:
            command = [sys.executable, __file__, "a", "b", "--folder", name]
            path = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")}
            done = subprocess.run(command, env=path, capture_output=True, text=True, check=True)
            said.append([json.loads(line) for line in done.stdout.splitlines()])
        counts: Counter[str] = Counter()
        for (file, old, old_words), (_, new, new_words) in zip(*said, strict=True):
            kinds = ["refused" if isinstance(x, str) else "read" for x in (old, new)]
            what = "the same" if old == new else f"{kinds[0]}, then {kinds[1]}"
            what += "" if old_words == new_words or old != new else ", other warnings"
            counts[what] += 1
            if what != "the same":
                print(
                    f"{what} · {file}\n  {str(old)[:300]} {old_words}\n"
                    f"  {str(new)[:300]} {new_words}"
                )
                print(f"  {(Path(name) / file).read_bytes()[:200]!r}")
    print(*(f"{n} {what}" for what, n in counts.most_common()), sep="\n")


if __name__ == "__main__":
    main()
