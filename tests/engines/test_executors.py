"""Blocks of rows, and the threads that run them."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pseudomallows.engines import executors
from pseudomallows.engines.executors import Threads, blocks, check_local, is_remote, run_together


class Elsewhere(Threads):
    """It says that it runs in other processes."""

    is_remote = True


@given(st.integers(0, 1000), st.integers(1, 300))
def test_blocks_have_every_row_once_and_in_order(n_rows, size):
    cut = blocks(n_rows, size)
    assert [row for part in cut for row in range(part.start, part.stop)] == list(range(n_rows))
    assert all(part.stop - part.start == size for part in cut[:-1])
    assert all(part.start < part.stop for part in cut)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_keep_their_order(n_threads):
    assert list(Threads(n_threads).map(abs, range(-50, 0))) == list(range(50, 0, -1))


def test_two_threads_run_at_once():
    meeting = threading.Barrier(2, timeout=20)  # nobody gets past it alone
    assert sorted(Threads(2).map(lambda _: meeting.wait(), range(2))) == [0, 1]


def test_errors_of_a_block_come_through():
    with pytest.raises(ZeroDivisionError):
        list(Threads(2).map(lambda number: 1 / number, [1, 0, 2]))


@pytest.mark.parametrize("wrong", [0, -1, 1.5])
def test_the_number_of_threads_is_checked(wrong):
    with pytest.raises((ValueError, TypeError), match="n_threads must be"):
        Threads(wrong)


def test_all_cores_are_those_this_process_may_use(monkeypatch):
    monkeypatch.setattr(executors.os, "sched_getaffinity", lambda _: {0, 3, 4})
    assert Threads().n_threads == 3
    monkeypatch.delattr(executors.os, "sched_getaffinity")  # as on a Mac
    monkeypatch.setattr(executors.os, "cpu_count", lambda: None)
    assert Threads().n_threads == 1
    assert executors.all_cores() is executors.all_cores()


def test_what_runs_here_only_refuses_other_processes():
    assert is_remote(Elsewhere())
    assert not is_remote(Threads(1))
    assert not is_remote(None)
    check_local(Threads(1), "this")
    check_local(None, "this")
    with pytest.raises(TypeError, match="this does not run on Dask workers: give threads"):
        check_local(Elsewhere(), "this")


def test_tasks_run_together_and_this_thread_watches():
    meeting, seen = threading.Barrier(2, timeout=30), []

    def meet(number):
        meeting.wait()
        seen.append((number, threading.current_thread() is threading.main_thread()))

    told = []
    run_together(meet, 2, 2, told.append)
    assert sorted(seen) == [(0, False), (1, False)]
    assert told
    assert all(told)


def test_a_task_that_runs_beside_others_takes_no_more_threads():
    def who(number):
        found.append(set(Threads(2).map(lambda _: threading.get_ident(), range(8))))
        assert found[-1] == {threading.get_ident()}

    found = []
    run_together(who, 2, 2, lambda is_well: None)
    assert len(found) == 2


@pytest.mark.parametrize("where", ["task", "watch"])
def test_an_error_ends_all_tasks_and_is_told_once_they_have_ended(where):
    stop, ended = threading.Event(), []

    def work(number):
        if where == "task" and number == 0:
            raise ValueError("broken")
        assert stop.wait(30)
        ended.append(number)

    def watch(is_well):
        if not is_well:
            stop.set()
        elif where == "watch":
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_together(work, 4, 2, watch)
    assert set(ended) == {0, 1} if where == "watch" else 0 not in ended
    assert len(ended) <= 2  # the others have not begun


def test_a_map_within_a_map_does_not_wait_for_its_own_threads():
    threads = Threads(2)
    found = threads.map(lambda first: sum(threads.map(abs, [first, -1, -2])), range(8))
    assert list(found) == [number + 3 for number in range(8)]
