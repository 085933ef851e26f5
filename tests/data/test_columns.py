"""What the names of columns say; the doctests of the module have the plain cases."""

import pytest

from pseudomallows.data import columns, ignored


@pytest.mark.parametrize(
    ("names", "what", "place"),
    [
        (["customer_id", "StockCode"], "item", 1),
        (["person", "user", "item"], "user", 1),  # the very name comes first
        (["user_id:token", "item_id:token"], "user", 0),  # of RecBole
        (["user", "item", "position"], "rank", 2),
        (["user", "item", "position", "rank"], "rank", 3),
    ],
)
def test_a_column_is_known_by_many_names(names, what, place):
    assert (
        columns.find_columns(names, "long-rankings" if what == "rank" else "clicks")[what] == place
    )


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["who", "item"], "no column for 'user': name one of who, item 'user'"),
        (["customer", "visitor", "item"], "2 columns for 'user'"),
    ],
)
def test_a_column_that_is_missing_or_there_twice_is_told(names, words):
    with pytest.raises(ValueError, match=words):
        columns.find_columns(names, "clicks")


def test_a_long_table_has_users_and_items_and_clicks_have_no_ranks():
    assert columns.is_long(["User ID", "movieId", "rank"])
    assert not columns.is_long(["user", "tea", "mate"])
    assert columns.kind_of(["user", "item", "time"]) == "clicks"
    assert columns.kind_of(["user", "item", "rank"]) == "long-rankings"
    assert columns.kind_of(["user", "tea", "mate"]) is None


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (["2", "0", "1"], [1, 2, 0]),  # bare numbers may count from 0
        (["choice_2", "choice_1"], [1, 0]),
        (["third", "first", "Second place"], [1, 2, 0]),
    ],
)
def test_places_are_put_in_order(names, order):
    assert columns.are_places(names)
    assert columns.order_of_places(names) == order


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["rank0", "rank1"], "column 'rank0': places start at 1"),
        (["1st", "first", "2nd"], "two columns are for place 1"),
        (["1st", "4th"], "no column is for place 2, but '4th' comes after it.* from 1 to 4"),
    ],
)
def test_places_with_a_gap_are_told(names, words):
    with pytest.raises(ValueError, match=words):
        columns.order_of_places(names)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("clicked", "clicked"),
        ("user_rating", "rating"),
        ("numVotes", "count"),
        ("click_count", "count"),
        ("pos", "position"),
        ("click_time", ""),
        ("unitPrice", ""),
    ],
)
def test_a_column_that_may_say_which_rows_are_no_clicks_is_found(name, kind):
    assert ignored.flagged_columns(["user", "item", name]) == ({2: kind} if kind else {})


@pytest.mark.parametrize(
    ("kind", "counts", "words"),
    [
        ("clicked", {}, "drop the rows that are not clicks"),
        ("position", {}, "give kind='long-rankings'"),
        ("count", {"0": 2, "3": 5, "x": 1}, "also the 2 of 7 whose count is 0 or less"),
        ("number", {-1: 4, 1: 6}, "also the 4 of 10 whose value is 0 or less"),
        ("rating", {1: 1, 2: 2, 5: 3}, "also the 3 of 6 whose rating is below 3, the middle"),
        ("rating", {float("nan"): 2}, "every row counts as a click: drop the rows"),
        ("number", {"True": 3, "false": 1}, "also the 1 of 4 whose value is 0 or less"),
    ],
)
def test_the_advice_counts_the_rows_that_may_be_no_clicks(kind, counts, words):
    assert words in ignored.advice_on("x", kind, counts)
