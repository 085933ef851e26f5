"""Answers that are given again."""

from pseudomallows.web.models import model as caches
from pseudomallows.web.models.model import AnswerCache


def test_kept_answers_have_a_limit(monkeypatch):
    monkeypatch.setattr(caches, "ANSWER_BYTES", 5000)
    answers = AnswerCache()
    for number in range(200):
        answers.put((1, b"%d" % number), b"x" * 100)
    there = [number for number in range(200) if answers.get((1, b"%d" % number)) is not None]
    assert there == list(range(184, 200))  # 303 bytes each
    assert answers.get((1, b"199")) == b"x" * 100
    assert answers.n_hits == len(there) + 1


def test_what_is_asked_for_again_stays(monkeypatch):
    monkeypatch.setattr(caches, "ANSWER_BYTES", 3 * 301)
    answers = AnswerCache()
    for name in (b"a", b"b", b"c"):
        answers.put((1, name), b"x" * 100)
    assert answers.get((1, b"a")) is not None
    answers.put((1, b"d"), b"x" * 100)
    assert answers.get((1, b"b")) is None
    assert answers.get((1, b"a")) is not None
