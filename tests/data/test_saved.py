"""Values from a file: each is checked before it is used, and none may be left over."""

import numpy as np
import pytest

from pseudomallows.data.archive import WrongFileError
from pseudomallows.data.saved import Saved

RNG = np.random.default_rng(1)
VALUES = {"n": 3, "alpha": 2.5, "rng": RNG.bit_generator.state, "part": {"n": 1}}


def test_values_are_asked_for_by_what_they_have_to_be():
    saved = Saved(VALUES, {"ranks": np.array([[1, 2], [2, 1]], np.int32)})
    assert saved.count("n", 1, 5) == 3
    assert saved.number("alpha") == 2.5
    assert saved.generator("rng").random() == np.random.default_rng(1).random()
    assert saved.rankings("ranks", (2, 2)).tolist() == [[1, 2], [2, 1]]
    with pytest.raises(WrongFileError, match="'part' does not belong here"):
        saved.check_all_used()
    assert saved.part("part").count("n", 1, 1) == 1
    saved.check_all_used()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda saved: saved.count("n", 4, 5), "'n' must be a whole number in 4..5"),
        (lambda saved: saved.count("alpha", 0, 5), "'alpha' must be a whole number"),
        (lambda saved: saved.number("n"), "'n' must be a finite number"),
        (lambda saved: saved.count("other", 0, 1), "'other' is missing"),
        (lambda saved: saved.part("part").count("n", 2, 3), "'part/n' must be a whole number"),
        (lambda saved: saved.parts("n", 2), "'n' must have 2 parts"),
        (lambda saved: saved.rankings("ranks", (2, 2)), "'ranks' must be made of rankings"),
        (lambda saved: saved.array("ranks", np.float64, (2, 2)), "must be float64 of shape"),
    ],
)
def test_what_does_not_fit_is_named(ask, words):
    saved = Saved(VALUES, {"ranks": np.array([[1, 1], [2, 1]], np.int32)})
    with pytest.raises(WrongFileError, match=words):
        ask(saved)
