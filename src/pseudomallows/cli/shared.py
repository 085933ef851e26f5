"""What several commands need: the data, the executor, the places to write to."""

import argparse
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from ..engines.executors import Executor, Threads
from ..files.atomic import check_target
from ..files.later import name_like
from ..files.read import read_as
from ..posteriors.personal_fit import Fit
from ..preferences import Clicks, Pairs, Rankings
from ..preferences.inputs.layout import Layout


def say(options: argparse.Namespace, words: str) -> None:
    """Words for people, on standard error, unless `--quiet`."""
    if not options.quiet:
        print(words, file=sys.stderr, flush=True)


def progress_of(options: argparse.Namespace) -> bool | None:
    """For `progress`: a bar on a terminal, unless `--quiet`."""
    return False if options.quiet else None


def read_data(options: argparse.Namespace) -> Rankings | Clicks | Pairs:
    """The data of the file; what a guess took it for is said, since it may be wrong."""
    prefs, said = read_as(options.file, options.kind, options.encoding, layout=layout_of(options))
    if options.kind is None:
        say(options, said)
    return prefs


def layout_of(options: argparse.Namespace) -> Layout:
    """What the options say of the table."""
    names = ("columns", "sep", "header", "min_rating", "min_clicks")
    return Layout(*(getattr(options, name) for name in names))


def read_clicks(options: argparse.Namespace, command: str) -> Clicks:
    """The data of the file, for a command that works on clicks only."""
    prefs = read_data(options)
    if prefs.kind != "clicks":
        raise TypeError(f"{command} needs clicks, and {options.file} holds {prefs.kind}")
    return cast(Clicks, prefs)


def clicks_for(posterior: Fit, options: argparse.Namespace) -> Clicks:
    """The clicks of a file that are to be added to a model, whose names may be numbers."""
    layout = layout_of(options)
    prefs, _ = read_as(
        options.file, "clicks", options.encoding, may_be_one_item=True, layout=layout
    )
    users, items = (name_like(names) for names in (posterior.users, posterior.items))
    renamed = prefs.rename(
        users=[users(name) for name in prefs.users], items=[items(name) for name in prefs.items]
    )
    return cast(Clicks, renamed)


def check_out(path: str, source: str, what: str = "model") -> None:
    """Refuse, before any work, a place where a model or a report cannot be saved."""
    if path == "-":
        raise ValueError(f"a {what} cannot go to standard output: name a file")
    target = check_target(path)
    if target.exists() and source != "-" and target.samefile(source):
        raise ValueError(f"--out {path} is the file that is read: give the {what} another name")


def check_report() -> None:
    """Say before any work, and not after it, that the library of the report is missing."""
    importlib.import_module("pseudomallows.show.page")


@contextmanager
def executor_of(options: argparse.Namespace) -> Iterator[Executor]:
    """Threads, or Dask workers for as long as they are needed."""
    if options.dask is None:
        yield Threads(options.threads)
        return
    from ..engines.dask import DaskExecutor

    with DaskExecutor(options.dask) as workers:
        yield workers
