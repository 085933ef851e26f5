"""Headers of comparisons and impressions."""

import pytest

from pseudomallows.data import columns


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["user", "better", "worse"], {"better": 1, "worse": 2, "user": 0}),
        (["Winner", "loser"], {"better": 0, "worse": 1}),
        (["assessor", "bottom_item", "top_item"], {"better": 2, "worse": 1, "user": 0}),
        (["chosen", "rejected", "COUNT"], {"better": 0, "worse": 1, "count": 2}),
        (["preferred", "other", "n", "judge"], {"better": 0, "worse": 1, "user": 3, "count": 2}),
        (["model_a", "model_b", "winner"], {"one": 0, "other": 1, "winner": 2}),
        (["user", "left", "right", "winner"], {"one": 1, "other": 2, "winner": 3, "user": 0}),
        (["item2", "item1", "preferred"], {"one": 1, "other": 0, "winner": 2}),
        (["a", "b", "choice"], {"one": 0, "other": 1, "winner": 2}),
        (
            ["conversation_a", "conversation_b", "winner", "model_a", "model_b", "turn"],
            {"one": 3, "other": 4, "winner": 2},
        ),
        (["model_a", "model_b", "winner", "loser"], {"better": 2, "worse": 3}),
    ],
)
def test_the_columns_of_comparisons_are_found(names, found):
    assert columns.is_pairs(names)
    assert columns.find_columns(names, "pairs") == found
    with pytest.raises(ValueError, match="these are comparisons of pairs, by the header"):
        columns.refuse_pairs(names)


@pytest.mark.parametrize(
    "names",
    [
        ["user", "chosen", "item"],
        ["winner", "tea"],
        ["a", "b"],
        ["user", "item", "better", "worse"],
    ],
)
def test_other_tables_are_no_comparisons(names):
    assert not columns.is_pairs(names)
    assert columns.refuse_pairs(names) is None


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["user", "better"], "no column for 'worse': name one of user, better 'worse'"),
        (["left", "right"], "no column for 'winner'"),
        (["better", "chosen", "worse"], None),  # the very name comes first
        (["winner", "chosen", "worse"], "2 columns for 'better'"),
        (["judge", "voter", "better", "worse"], "2 columns for 'user'"),
        (["text_a", "text_b", "x_a", "x_b", "winner"], "2 pairs of columns may be compared"),
    ],
)
def test_columns_that_are_not_clear_are_told(names, words):
    if words is None:
        assert columns.find_columns(names, "pairs")["better"] == 0
        return
    with pytest.raises(ValueError, match=words):
        columns.find_columns(names, "pairs")


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["user", "item", "clicked"], {"user": 0, "item": 1, "clicked": 2}),
        (["movieId", "taken", "userId"], {"user": 2, "item": 0, "clicked": 1}),
        (["user", "item", "label", "click"], {"user": 0, "item": 1, "clicked": 3}),
        (
            ["customer", "session_id", "item", "isClick"],
            {"user": 0, "item": 2, "clicked": 3, "slate": 1},
        ),
        (["session", "item", "clicked"], {"user": 0, "item": 1, "clicked": 2}),
        (
            ["session", "impression_id", "item", "clicked"],
            {"user": 0, "item": 2, "clicked": 3, "slate": 1},
        ),
        (["impression_id", "item", "clicked"], {"user": 0, "item": 1, "clicked": 2}),
        (
            ["user", "session", "impression_id", "item", "clicked"],
            {"user": 0, "item": 3, "clicked": 4, "slate": 2},
        ),
    ],
)
def test_the_columns_of_impressions_are_found(names, found):
    assert columns.find_columns(names, "impressions") == found


def test_the_column_of_slates_may_have_any_name():
    names = ["user", "item", "clicked", "hour", "session"]
    assert columns.find_columns(names, "impressions", "hour")["slate"] == 3
    with pytest.raises(ValueError, match="slate must be a column, got 'day'"):
        columns.find_columns(names, "impressions", "day")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["user", "item"], "no column for 'clicked'"),
        (["user", "clicked"], "no column for 'item'"),
        (["item", "clicked"], "no column for 'user'"),
        (["judge", "voter", "item", "clicked"], "2 columns for 'user'"),
    ],
)
def test_columns_of_impressions_that_are_missing_are_told(names, words):
    with pytest.raises(ValueError, match=words):
        columns.find_columns(names, "impressions")


def test_ranks_and_ratings_are_no_impressions():
    assert columns.kind_of(["user", "item", "label"]) == "impressions"
    assert columns.kind_of(["user", "item", "rank", "clicked"]) == "long-rankings"
    assert columns.kind_of(["item", "clicked"]) is None
