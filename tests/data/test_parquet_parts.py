"""Clicks in parts: what is cut can be put together again, and sums do not depend on the cut."""

import contextlib
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pseudomallows as pm
from pseudomallows.cli import main
from pseudomallows.data import SizeTable
from pseudomallows.data.parquet import load_part
from pseudomallows.laws.law import MOST_VALUE, UNITS, exact_sum

pq = pytest.importorskip("pyarrow.parquet")

ROWS = {"bob": ["tea", "rum"], "ann": ["rum"], "zoe": [], "eve": ["ale", "tea"], "dan": ["tea"]}


def clicks_of(prefs):
    """{user: items}, as text, of those who have any."""
    rows = itertools.pairwise(prefs.starts.tolist())
    named = {
        str(user): sorted(str(prefs.items[code]) for code in prefs.codes[first:last])
        for user, (first, last) in zip(prefs.users.tolist(), rows, strict=True)
    }
    return {user: items for user, items in named.items() if items}


def assert_round_trip(prefs, folder, n_parts):
    parts = pm.data.split(prefs, folder, n_parts)
    assert 1 <= len(parts.paths) <= n_parts
    back = pm.read(folder)
    assert isinstance(back, pm.Clicks)
    assert clicks_of(back) == clicks_of(prefs)
    assert back.users.tolist() == sorted(clicks_of(prefs))
    items = [str(name) for name in prefs.items.tolist()]
    alone = [load_part(path, items) for path in parts.paths]
    assert [user for part in alone for user in part.users.tolist()] == back.users.tolist()
    joined = {user: items for part in alone for user, items in clicks_of(part).items()}
    assert joined == clicks_of(prefs)
    parts.check_order([(part.users[0], part.users[-1]) for part in alone])
    for part in alone:
        assert all(
            (np.diff(part.codes[first:last]) > 0).all()
            for first, last in itertools.pairwise(part.starts.tolist())
        )


def flipped(raw, bit):
    damaged = bytearray(raw)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


@pytest.mark.parametrize("with_times", [False, True])
def test_a_flipped_bit_never_reads_as_other_clicks(tmp_path, with_times):
    rng = np.random.default_rng(1)
    clicks = rng.random((200, 24)) < 0.3
    times = rng.integers(1e9, 2e9, clicks.shape) if with_times else None
    pm.data.split(pm.Preferences.from_clicks(clicks, times=times), tmp_path, 2)
    whole, files = pm.read(tmp_path), sorted(tmp_path.iterdir())
    n_refused = 0
    for _ in range(40):
        file = files[rng.integers(2)]
        raw = file.read_bytes()
        file.write_bytes(flipped(raw, int(rng.integers(8 * len(raw)))))
        try:
            found = pm.read(tmp_path)
        except ValueError as error:
            n_refused += str(file) in str(error)
        else:
            assert found.digest() == whole.digest()
        file.write_bytes(raw)
    assert n_refused > 30


def test_flips_that_checksums_do_not_see(tmp_path):
    """A page of no known kind is passed over, names that are no text any more were read as hex,
    and a wrong size of a column ended the process."""
    pm.data.split(pm.Preferences.from_clicks(ROWS), tmp_path, 1)
    (file,) = tmp_path.iterdir()
    raw, whole = file.read_bytes(), pm.read(tmp_path)
    n_refused = 0
    footer = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    kinds = [place for place in range(footer) if raw[place : place + 1] == b"\x15"]
    for bit in [8 * place + bit for place in kinds for bit in range(8, 16)]:
        file.write_bytes(flipped(raw, bit))
        try:
            assert pm.read(tmp_path).digest() == whole.digest()
        except ValueError as error:
            n_refused += "damaged: it announces" in str(error)
    assert n_refused > 0
    for bit in range(8 * footer, 8 * len(raw), 13):
        file.write_bytes(flipped(raw, bit))
        with contextlib.suppress(ValueError):
            assert pm.read(tmp_path).digest() == whole.digest()


def test_recommendations_in_parquet_have_checksums(tmp_path):
    fit = pm.fit(pm.Preferences.from_clicks(ROWS), "pseudo", alpha=2, rng=1)
    fit.save(tmp_path / "m.pm")
    out = tmp_path / "r.parquet"
    assert main(["recommend", str(tmp_path / "m.pm"), "--out", str(out)]) == 0
    raw = out.read_bytes()
    middle = pq.ParquetFile(out).metadata.row_group(0).column(0).data_page_offset + 40
    out.write_bytes(flipped(raw, 8 * middle))
    with pytest.raises(OSError, match=r"checksum|CRC"):
        pq.read_table(out, page_checksum_verification=True)


# Split


@pytest.mark.parametrize("n_parts", [1, 2, 3, 4, 9])
def test_what_is_split_can_be_read(tmp_path, n_parts):
    assert_round_trip(pm.Preferences.from_clicks(ROWS), tmp_path, n_parts)


def test_parts_have_about_the_same_number_of_clicks(tmp_path):
    prefs = pm.simulate_clicks(300, 12, 4, 3, rng=1).preferences
    parts = pm.data.split(prefs, tmp_path / "new" / "folder", 6)
    assert [path[-18:] for path in parts.paths] == [f"part-0000{n}.parquet" for n in range(6)]
    counts = [pq.ParquetFile(path).metadata.num_rows for path in parts.paths]
    assert sum(counts) == len(prefs.codes)
    assert max(counts) - min(counts) <= 24  # two users


def test_numbers_as_names(tmp_path):
    """They rise as text: 10 comes before 9."""
    rows = {user: [user % 3, 3] for user in range(12)}
    assert_round_trip(pm.Preferences.from_clicks(rows), tmp_path, 3)
    assert pm.read(tmp_path).users.tolist()[:4] == ["0", "1", "10", "11"]


users = st.one_of(st.integers(-5, 30), st.text("aZé 1_", min_size=1).map(str.strip).filter(bool))
logs = st.dictionaries(users, st.sets(st.integers(0, 5)), min_size=1, max_size=8)


@given(rows=logs.filter(lambda rows: any(rows.values())), n_parts=st.integers(1, 5))
def test_any_log_can_be_split(tmp_path_factory, rows, n_parts):
    rows = {user: sorted(items) for user, items in rows.items()}
    if len({str(user) for user in rows}) < len(rows):
        return
    prefs = pm.Preferences.from_clicks(rows, items=range(6))
    folder = tmp_path_factory.mktemp("parts")
    if len({item for items in rows.values() for item in items}) < 2:
        pm.data.split(prefs, folder, n_parts)  # too few items to be read without their names
    else:
        assert_round_trip(prefs, folder, n_parts)


def test_what_cannot_be_split(tmp_path):
    prefs = pm.Preferences.from_clicks(ROWS)
    with pytest.raises(TypeError, match=r"prefs must be clicks .*got Rankings"):
        pm.data.split(pm.Preferences.from_rankings([[1, 2]]), tmp_path)
    twice = pm.Preferences.from_clicks(ROWS, weights=[1, 2, 1, 1, 1])
    with pytest.raises(ValueError, match="rows of weight 1 only: repeat the rows"):
        pm.data.split(twice, tmp_path)
    with pytest.raises(ValueError, match="two users have the same name as text"):
        pm.data.split(pm.Preferences.from_clicks({1: ["tea"], "1": ["rum"]}), tmp_path)
    assert not any(tmp_path.iterdir())
    pm.data.split(prefs, tmp_path, 2)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileExistsError, match="has Parquet files already"):
        pm.data.split(prefs, tmp_path, 2)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    with pytest.raises(FileExistsError, match="it is a file, and must be a folder"):
        pm.data.split(prefs, tmp_path / "part-00000.parquet", 2)


@pytest.mark.parametrize("n_parts", [0, -1, 1.5, "two"])
def test_the_number_of_parts_is_checked(tmp_path, n_parts):
    with pytest.raises((TypeError, ValueError), match="n_parts must be"):
        pm.data.split(pm.Preferences.from_clicks(ROWS), tmp_path, n_parts)


def test_nobody_to_split(tmp_path):
    nobody = pm.Preferences.from_clicks({"ann": [], "bob": []}, items=["tea", "rum"])
    with pytest.raises(ValueError, match="nobody has clicked"):
        pm.data.split(nobody, tmp_path)


# Parts


def test_which_files_are_parts(tmp_path):
    pm.data.split(pm.Preferences.from_clicks(ROWS), tmp_path, 2)
    for name in (".part.parquet", "_meta.parquet", "notes.txt"):
        (tmp_path / name).write_text("")
    parts = pm.data.Parts(tmp_path)
    assert repr(parts) == "Parts(2 files)"
    assert pm.data.Parts(parts.paths).paths == parts.paths
    assert repr(pm.data.Parts(parts.paths[:1])) == "Parts(1 file)"
    assert pm.data.Parts(parts.paths, items=[1, "tea"]).items == ["1", "tea"]


def test_what_parts_are_not(tmp_path):
    with pytest.raises(FileNotFoundError, match="parts must be a folder of Parquet files, got"):
        pm.data.Parts(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"no \*\.parquet in"):
        pm.data.Parts(tmp_path)
    with pytest.raises(ValueError, match="one file or more, got none"):
        pm.data.Parts([])
    with pytest.raises(ValueError, match="must have different names"):
        pm.data.Parts([tmp_path / "a" / "x.parquet", tmp_path / "b" / "x.parquet"])
    with pytest.raises(ValueError, match="items must have different names as text, got '1' twice"):
        pm.data.Parts([tmp_path / "x.parquet"], items=[1, 2, "1"])
    with pytest.raises(TypeError, match="items must be a list of names, got 'tea'"):
        pm.data.Parts([tmp_path / "x.parquet"], items="tea")


def test_users_must_rise(tmp_path):
    parts = pm.data.Parts([tmp_path / f"{name}.parquet" for name in "abcd"])
    parts.check_order([("ann", "bob"), None, ("eve", "eve"), ("zoe", "zoe")])
    for wrong in (
        [("ann", "bob"), None, ("bob", "eve"), None],  # one in two files
        [("ann", "eve"), ("bob", "bob"), None, None],
        [("eve", "zoe"), None, None, ("ann", "bob")],
    ):
        with pytest.raises(ValueError, match=r"not come after .* cut the log with pm\.data\.split"):
            parts.check_order(wrong)


def test_an_unknown_item_is_named(tmp_path):
    path = pm.data.split(pm.Preferences.from_clicks(ROWS), tmp_path, 1).paths[0]
    assert load_part(path, ["x", "tea", "rum", "ale"]).items.tolist() == ["x", "tea", "rum", "ale"]
    with pytest.raises(ValueError, match=r"part-00000\.parquet: unknown item: 'ale', 'rum'"):
        load_part(path, ["tea", "x"])


# Tables by the number of clicks


@st.composite
def weighted_clicks(draw):
    n_users = draw(st.integers(1, 12))
    rows = draw(st.lists(st.sets(st.integers(0, 4)), min_size=n_users, max_size=n_users))
    weights = draw(st.lists(st.integers(0, 4), min_size=n_users, max_size=n_users))
    named = {user: sorted(items) for user, items in enumerate(rows)}
    assume(any(weight and items for weight, items in zip(weights, rows, strict=True)))
    return pm.Preferences.from_clicks(named, items=range(5), weights=weights)


def as_counts(table):
    """{number of clicks: (users, clicks on each item)}."""
    rows = zip(table.users.tolist(), table.counts.tolist(), strict=True)
    return dict(zip(table.sizes.tolist(), rows, strict=True))


@given(prefs=weighted_clicks())
def test_tables_by_size_are_counts(prefs):
    users, counts = Counter(), {}
    for row, weight in enumerate(prefs.weights.tolist()):
        mine = prefs.codes[prefs.starts[row] : prefs.starts[row + 1]]
        if weight and len(mine):
            users[len(mine)] += weight
            counts.setdefault(len(mine), np.zeros(5, dtype=int))[mine] += weight
    wanted = {size: (users[size], counts[size].tolist()) for size in sorted(users)}
    table = prefs.by_size()
    assert as_counts(table) == wanted
    assert list(as_counts(table)) == sorted(wanted)


@given(prefs=weighted_clicks(), cuts=st.lists(st.integers(0, 12), max_size=3))
def test_tables_of_parts_add_up(prefs, cuts):
    prefs = prefs.take(prefs.weights > 0)
    rows = np.split(np.arange(prefs.n_users), sorted(cuts))
    tables = [prefs.take(part).by_size() for part in rows]
    for order in (tables, tables[::-1]):
        total = order[0]
        for table in order[1:]:
            total = SizeTable.plus(total, table)
        assert as_counts(total) == as_counts(prefs.by_size())


def test_tables_of_weight_0_are_empty():
    nobody = pm.Preferences.from_clicks({"ann": [0, 1]}, items=range(5), weights=[0])
    assert as_counts(nobody.by_size()) == {}


def test_tables_of_many_users_are_made_in_blocks():
    n_users = (1 << 16) + 1000
    rng = np.random.default_rng(1)
    sizes = rng.integers(0, 3, n_users)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    codes = np.zeros(starts[-1], dtype=np.int32)
    codes[starts[1:][sizes == 2] - 1] = 1
    weights = rng.integers(0, 5, n_users)
    prefs = pm.Clicks(weights, np.arange(n_users), np.arange(3), starts, codes)
    ones, twos = int(weights[sizes == 1].sum()), int(weights[sizes == 2].sum())
    assert as_counts(prefs.by_size()) == {1: (ones, [ones, 0, 0]), 2: (twos, [twos, twos, 0])}


# Sums that do not depend on the cut

values = st.floats(-1e6, 0) | st.floats(-1e300, 0) | st.just(-math.inf)
terms = st.lists(st.tuples(values, st.integers(0, 10**6)), max_size=20)


@given(terms=terms, cut=st.integers(0, 20), order=st.randoms(use_true_random=False))
def test_exact_sums_do_not_depend_on_the_cut(terms, cut, order):
    def total(rows):
        return exact_sum(np.array([v for v, _ in rows]), np.array([w for _, w in rows], dtype=int))

    whole = total(terms)
    assert isinstance(whole, int)
    assert total(terms[:cut]) + total(terms[cut:]) == whole
    mixed = list(terms)
    order.shuffle(mixed)
    assert total(mixed) == whole
    one_each = [total([term]) for term in terms]
    assert sum(one_each) == whole
    near = math.fsum(weight * max(value, -MOST_VALUE) for value, weight in terms)
    n_people = sum(weight for _, weight in terms)
    assert abs(whole / UNITS - near) <= n_people / UNITS + 1e-12 * abs(near)


def test_exact_sums_of_a_billion_people():
    value, weight = -float(MOST_VALUE), 10**9
    assert exact_sum(np.array([value]), np.array([weight])) == -weight * int(MOST_VALUE) * UNITS
    many = np.full(1000, value), np.full(1000, 10**6)
    assert exact_sum(*many) == -weight * int(MOST_VALUE) * UNITS
