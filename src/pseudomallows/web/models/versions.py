"""Numbered versions of a model: MODEL itself is 1, then MODEL.d/000002.pm and so on.

Each is written whole before it gets its number, and none is ever changed. A version holds, in its
settings, the digest of the MODEL it was made from: for another MODEL it does not count.
"""

import contextlib
import hashlib
import logging
import os
import re
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.blocks import Clicks
from ...personal.personal_fit import Fit, PersonalFit
from ...personal.save_personal import load
from ..stores.store import Click

log = logging.getLogger("pseudomallows")
NAME = re.compile(r"(\d{6,})\.pm")
ORIGIN = "served"  # the setting that holds the digest; so it is called in files since version 0.1


class Versions:
    """The versions of one model."""

    def __init__(self, model: str | os.PathLike[str]):
        self.model = Path(model)
        self.folder = self.model.with_name(self.model.name + ".d")
        self.digest = hashlib.sha256(self.model.read_bytes()).hexdigest()

    def numbers(self) -> list[int]:
        """Numbers of the versions on the disk, without 1, the oldest first."""
        if not self.folder.is_dir():
            return []
        names = (NAME.fullmatch(name) for name in os.listdir(self.folder))
        return sorted(int(name[1]) for name in names if name)

    def path(self, number: int) -> Path:
        """Where a version is."""
        return self.model if number == 1 else self.folder / f"{number:06}.pm"

    def load(self, number: int) -> Fit:
        """One version; an error if it is damaged or made from another model."""
        posterior = load(self.path(number))
        origin = posterior.settings.get(ORIGIN)
        if number > 1 and origin != {"base": self.digest}:
            raise ValueError(f"{self.path(number)} was made from another {self.model.name}")
        return posterior

    def newest(self, forgotten: int = 0) -> tuple[int, Fit]:
        """The newest good version; bad ones are skipped, with a line, and then those as well that
        may know users who were removed since (see `Store.forgotten`)."""
        newest = max([1, *self.numbers()])
        for number in reversed(self.numbers()):
            try:
                posterior = self.load(number)
                if number == newest or known_removals(posterior) >= forgotten:
                    return number, posterior
                log.warning("version %d is skipped: it may know users removed since", number)
            except (ValueError, OSError) as error:
                log.warning("version %d is skipped: %s", number, error)
        return 1, self.load(1)

    def drop_outdated(self, forgotten: int, below: int) -> None:
        """Remove the versions with lower numbers that may know users who were removed since."""
        for number in self.numbers():  # the oldest have learned first
            with contextlib.suppress(ValueError, OSError):
                if number >= below or known_removals(self.load(number)) >= forgotten:
                    return
                self.path(number).unlink()
                log.info("version %d is removed, as it may know users removed since", number)

    def save(self, posterior: Fit) -> int:
        """Write a new version, whole, and give it the next number."""
        posterior.settings[ORIGIN] = {"base": self.digest}
        self.folder.mkdir(mode=0o700, exist_ok=True)
        draft = self.folder / f".draft-{os.getpid()}-{threading.get_ident()}.pm"
        try:
            draft.touch(mode=0o600)
            posterior.save(draft)
            draft.chmod(0o600)
            return self._number(draft)
        finally:
            draft.unlink(missing_ok=True)

    def _number(self, draft: Path) -> int:
        """Give a file that is written whole the next free number."""
        number = max([1, *self.numbers()]) + 1
        while True:
            try:
                os.link(draft, self.path(number))  # fails if another process has taken the number
                break
            except FileExistsError:
                number += 1
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return number


def known_changes(posterior: Fit) -> int:
    """How many clicks had been added to the store or removed when a version was fitted."""
    return int(posterior.settings.get("stored_changes", 0))


def known_removals(posterior: Fit) -> int:
    """Up to which change of the store (see `Store.forgotten`) a version has no removed user."""
    return max(known_changes(posterior), int(posterior.settings.get("stored_removals", 0)))


def without_removed(fit: Fit, own: Clicks, stored: Iterable[Click], forgotten: int) -> Fit:
    """A refit without the clicks that were removed from the store since it had read them, and
    without the users to whom nothing is left. The clicks of `own`, the first model, stay."""
    data = fit.clicks
    assert data is not None
    rows, codes = (
        {str(name): number for number, name in enumerate(names.tolist())}
        for names in (data.users, data.items)
    )
    there = [rows[u] * data.n_items + codes[i] for u, i, _ in stored if u in rows and i in codes]
    # users and items of the first model have the same numbers in a refit: others come after them
    there += (own.owners * data.n_items + own.codes).tolist()
    left = data.choose(np.isin(data.owners * data.n_items + data.codes, there))
    stays = (left.n_clicks > 0) | (np.arange(data.n_users) < own.n_users)
    fit.settings["stored_removals"] = forgotten
    return _of_users(fit, left.take(stays), stays)


def _of_users(fit: Fit, data: Clicks, stays: NDArray[np.bool_]) -> Any:
    """A fit of these users alone, whose clicks are `data`."""
    fields: dict[str, Any] = {"users": fit.users[stays], "data": data}
    if not isinstance(fit, PersonalFit):
        fields |= {"chain_memberships": fit.chain_memberships[:, stays]}
        fields |= {"latent": fit.latent[:, :, :0]}  # of users by number; no answer needs them
        fit.settings["options"]["keep_latent"] = []
    elif fit.made_population is not None:
        fields |= {"made_population": _of_users(fit.made_population, data, stays)}
    return replace(fit, **fields)
