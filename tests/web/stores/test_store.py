"""Stores of both kinds keep what they have acknowledged."""

import asyncio
import json
import random
import socket
import threading
import time

import pytest

from pseudomallows.web.errors import ServiceError
from pseudomallows.web.stores import store as store_module
from pseudomallows.web.stores.async_store import AsyncStore
from pseudomallows.web.stores.open import open_store
from webhelp import Process, make_model, pairs_in, run_sql, wait_until


def test_clicks_are_kept_once_in_order_and_found_again(address):
    store = open_store(address)
    store.add([("ann", "tea"), ("ann", "rum"), ("bob", "ü ☕ 'x'; --"), ("ann", "tea")])
    store.add([("ann", "ale")])
    assert store.clicks_of(["ann", "zoe"]) == {"ann": ["tea", "rum", "ale"], "zoe": []}
    store.close()
    store = open_store(address)
    expected = [("ann", "tea"), ("ann", "rum"), ("bob", "ü ☕ 'x'; --"), ("ann", "ale")]
    assert pairs_in(store) == expected
    assert store.n_clicks() == 4
    store.close()


def test_many_clicks_come_back_in_pieces(address):
    store = open_store(address)
    pairs = [(f"user {i % 997}", f"item {i}") for i in range(12_345)]
    store.add(pairs)
    assert pairs_in(store) == pairs
    store.close()


def test_the_newest_clicks_come_first_and_those_of_users_with_times(address, monkeypatch):
    """Page by page, and no more than are wanted."""
    monkeypatch.setattr(store_module, "PAGE", 2)
    store = open_store(address)
    store.add([("ann", "tea"), ("bob", "tea"), ("ann", "ale")], [5.0, 6.0, float("nan")])
    upload = store.begin_upload(1, 2)
    store.add_part(upload, [("ann", "gin"), ("ann", "cola"), ("ann", "tea")], [9.0, 8.0, 7.0])
    assert [len(page) for page in store.newest_clicks(9)] == [2, 1]  # it does not count yet
    store.finish_upload(upload)
    store.add([("ann", "rum")])
    posted = [("ann", "rum"), ("ann", "ale"), ("bob", "tea"), ("ann", "tea")]
    pages = list(store.newest_clicks(6))
    assert [len(page) for page in pages] == [2, 2, 2]
    assert [tuple(pair) for page in pages for pair in page] == [
        *posted,
        ("ann", "cola"),
        ("ann", "gin"),
    ]
    found = [(item, when) for _, item, when in store.timed_clicks_of(["ann"])]
    assert (
        str(found[:-1]) == "[('tea', 5.0), ('ale', nan), ('cola', 8.0), ('gin', 9.0), ('tea', 7.0)]"
    )
    assert found[-1][0] == "rum"
    assert abs(found[-1][1] - time.time()) < 60
    store.close()


def test_all_or_none(address):
    store = open_store(address)

    def broken():
        yield ("ann", "tea")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.add(broken())
    with pytest.raises((ServiceError, UnicodeEncodeError)):
        store.add([("ann", "rum"), ("ann", "\ud800")])
    assert store.n_clicks() == 0
    store.add([("ann", "tea")])
    assert store.n_clicks() == 1
    store.close()


def test_many_writers_to_one_user_through_two_connections(address):
    """As two processes would: each click is there once, and every answer holds what was given."""
    stores = [open_store(address) for _ in range(2)]
    writers = [AsyncStore(store) for store in stores]

    async def write(number):
        items = [f"item {number}", f"item {number + 1}", "all"]
        stored = await writers[number % 2].add("ann", items)
        assert set(items) <= set(stored)

    async def write_all():
        await asyncio.gather(*(write(number) for number in range(200)))

    asyncio.run(write_all())
    for writer in writers:
        writer.close()
    assert sorted(stores[0].clicks_of(["ann"])["ann"]) == sorted(
        ["all", *(f"item {i}" for i in range(201))]
    )
    for store in stores:
        store.close()


def hammer(port, worker, acknowledged, stop):
    """Post clicks over one connection; note those that were acknowledged."""
    try:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            stream = connection.makefile("rb")
            for number in range(10**6):
                if stop.is_set():
                    return
                user, item = f"user {worker} {number // 5}", f"item {number % 5}"
                body = json.dumps({"clicks": [item]}).encode()
                path = f"/users/{user}/clicks".replace(" ", "%20").encode()
                connection.sendall(
                    b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                    % (path, len(body), body)
                )
                if stream.readline() != b"HTTP/1.1 200 OK\r\n":
                    return
                length = 0
                while (line := stream.readline().lower()) != b"\r\n":
                    if line.startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                stream.read(length)
                acknowledged.append((user, item))
    except OSError:
        return


def test_no_acknowledged_click_is_lost_by_a_kill(address, tmp_path):
    """Two processes, killed in the middle of a load from several connections."""
    make_model(tmp_path / "m.pm")
    services = [Process(tmp_path / "m.pm", address) for _ in range(2)]
    acknowledged, stop = [], threading.Event()
    try:
        threads = [
            threading.Thread(target=hammer, args=(services[n % 2].port, n, acknowledged, stop))
            for n in range(6)
        ]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(acknowledged) >= 300)
    finally:
        for service in services:
            service.kill()
        stop.set()
    for thread in threads:
        thread.join()
    store = open_store(address)
    assert set(acknowledged) <= set(pairs_in(store))
    store.close()
    with Process(tmp_path / "m.pm", address) as service:
        user, item = acknowledged[-1]
        path = f"/users/{user.replace(' ', '%20')}"
        assert item in service.ask(f"{path}/clicks", {"clicks": [item]})[1]["clicks"]


# Uploads


def finish(store, pairs):
    """Store an upload in two parts; its number."""
    upload = store.begin_upload(len({user for user, _ in pairs}), len({i for _, i in pairs}))
    for part in (pairs[:1], pairs[1:]):
        store.add_part(upload, part)
    store.finish_upload(upload)
    return upload


def pairs_of(text):
    return [tuple(words.split()) for words in text.split(", ")]


def test_an_upload_is_seen_whole_or_not_at_all(address):
    store, other = open_store(address), open_store(address)
    store.add([("ann", "tea")])
    upload = store.begin_upload(2, 2)
    store.add_part(upload, [("ann", "rum"), ("ann", "tea")])
    store.add_part(upload, [("bob", "rum")])
    for one in (store, other):
        assert one.clicks_of(["ann", "bob"]) == {"ann": ["tea"], "bob": []}
        assert pairs_in(one) == [("ann", "tea")]
        assert (one.n_clicks(), one.uploads()) == (1, [])
    store.finish_upload(upload)
    store.add([("ann", "ale")])
    for one in (store, other):
        assert one.clicks_of(["ann", "bob"]) == {"ann": ["tea", "rum", "ale"], "bob": ["rum"]}
        assert set(pairs_in(one)) == {*pairs_of("ann tea, ann rum, ann ale, bob rum")}
        (row,) = one.uploads()
        assert (row.upload, row.users, row.items, row.clicks) == (upload, 2, 2, 3)
    for one in (store, other):
        one.close()


def test_a_removed_upload_takes_only_its_own_clicks(address):
    store = open_store(address)
    store.add(pairs_of("ann tea"))
    first = finish(store, pairs_of("ann tea, ann rum, bob rum, bob ale"))
    second = finish(store, pairs_of("bob rum, eve gin"))
    store.add(pairs_of("bob ale"))
    assert store.remove_upload(first) == 4
    expected = {"ann": ["tea"], "bob": ["rum", "ale"], "eve": ["gin"]}
    assert store.clicks_of(["ann", "bob", "eve"]) == expected
    assert [row.upload for row in store.uploads()] == [second]
    assert store.remove_upload(first) is None
    ((number, (stage, rows, _)),) = store.left_over().items()
    assert (number, stage, rows) == (first, "deleted", 4)
    while store.clean(first):
        pass
    assert store.left_over() == {}
    assert store.clean(second) is False  # one that counts is left alone
    assert store.clicks_of(["ann", "bob", "eve"]) == expected
    assert finish(store, pairs_of("zoe gin")) == second + 1
    store.close()


def test_all_stored_clicks_of_a_user_can_be_removed(address):
    store = open_store(address)
    store.add(pairs_of("ann tea, bob tea"))
    finish(store, pairs_of("ann rum, bob rum"))
    finish(store, pairs_of("bob ale, bob gin"))
    assert store.remove_user("bob") == 4
    assert store.remove_user("bob") == 0
    assert store.clicks_of(["ann", "bob"]) == {"ann": ["tea", "rum"], "bob": []}
    assert [(row.users, row.clicks) for row in store.uploads()] == [(0, 0), (1, 1)]
    store.close()


def test_an_upload_that_was_given_up_cannot_go_on(address):
    store = open_store(address)
    upload = store.begin_upload(1, 2)
    store.add_part(upload, [("ann", "tea")])
    assert store.remove_upload(upload, "running") == 1
    with pytest.raises(ServiceError, match="given up"):
        store.add_part(upload, [("ann", "rum")])
    with pytest.raises(ServiceError, match="given up"):
        store.finish_upload(upload)
    assert (store.n_clicks(), pairs_in(store)) == (0, [])
    store.close()


def test_the_running_count_is_that_of_the_rows(address):
    """After any mixture of changes through two connections, as of two processes."""
    rng = random.Random(7)
    stores, numbers = [open_store(address) for _ in range(2)], []
    for _ in range(120):
        store, what = rng.choice(stores), rng.random()
        pairs = {(f"u{rng.randrange(9)}", f"i{rng.randrange(9)}") for _ in range(rng.randint(2, 9))}
        before = store.counts()[1]
        if what < 0.5:
            store.add(sorted(pairs))
        elif what < 0.75:
            numbers.append(finish(store, sorted(pairs)))
        elif what < 0.9:
            store.remove_user(f"u{rng.randrange(9)}")
        elif numbers:
            upload = numbers.pop(rng.randrange(len(numbers)))
            store.remove_upload(upload)
            while store.clean(upload):
                pass
        assert store.n_clicks() == len(pairs_in(stores[0]))
        assert store.counts()[1] >= before
    for store in stores:
        store.close()


# Schemas


OLD = (
    "CREATE TABLE clicks (number INTEGER PRIMARY KEY AUTOINCREMENT, "
    "user TEXT NOT NULL, item TEXT NOT NULL, UNIQUE (user, item))",
    "CREATE TABLE pseudomallows_clicks (number BIGSERIAL PRIMARY KEY, "
    "name TEXT NOT NULL, item TEXT NOT NULL, UNIQUE (name, item))",
)


def test_a_store_of_version_0_1_is_taken_over(address):
    is_file = not address.startswith("postgresql")
    table, user = ("clicks", "user") if is_file else ("pseudomallows_clicks", "name")
    run_sql(
        address,
        OLD[0 if is_file else 1],
        f"INSERT INTO {table} ({user}, item) VALUES ('ann', 'tea'), ('ann', 'rum')",
    )
    for _ in range(2):
        store = open_store(address)
        assert store.clicks_of(["ann"]) == {"ann": ["tea", "rum"]}
        assert store.counts() == (2, 2)
        store.close()
    store = open_store(address)
    finish(store, pairs_of("bob tea, bob ale"))
    store.add(pairs_of("ann tea, ann gin"))
    assert store.counts() == (5, 5)
    store.close()


def test_a_store_of_a_newer_program_is_refused(address):
    open_store(address).close()
    prefix = "pseudomallows_" if address.startswith("postgresql") else ""
    run_sql(address, f"UPDATE {prefix}state SET schema = 99")
    with pytest.raises(ValueError, match=r"schema is number 99.*update pseudomallows"):
        open_store(address)
    run_sql(address, f"ALTER TABLE {prefix}state RENAME COLUMN schema TO version")
    with pytest.raises(ValueError, match=r"has the columns one, version, .*wanted one, schema"):
        open_store(address)
