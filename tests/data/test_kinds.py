"""The kind of a table: seen from its header and its cells, and never guessed."""

import pandas as pd
import pytest

import pseudomallows as pm


def test_orderings_of_numbers_need_their_kind(put):
    path = put("1,2,3\n3,1,2\n")
    with pytest.raises(ValueError, match="may name items or places"):
        pm.read(path)
    assert pm.read(path, "orderings").rankings.tolist() == [[1, 2, 3], [2, 3, 1]]
    assert pm.read(path, "rankings").rankings.tolist() == [[3, 1, 2]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("login,sku\nu1,s1\nu1,s2\nu2,s1\n", "cannot tell from the header what this is"),
        ('user,x,y\nx,"1,0","2,0"\ny,"2,0","1,0"\n', "line 2: '1,0' has a decimal comma"),
        ("a|b|c\n1|2|3\n2|1,5|3\n", "line 3: '1,5' has a decimal comma"),
        ("a,b,c\n1,0,2,0,3,0\n", "line 2: there are 6 cells, .* is there a decimal comma"),
        ("ann,tea,mate,juice\nbob,mate,tea,juice\n", "cannot tell from the header what this is"),
        ("user,a,b,c\nx,3,0,2\ny,0,1,0\n", "may be counts"),
        ("2.0,1.0,3.0\n1.0,2.0,3.0\n3,1,2\n", "there is no header"),
        ("user,a,b,c\nx,0,1,2\ny,2,1,0\n", "every user has one rank 0"),
        ("user,item,rank\nx,a,0\nx,b,1\n", "ranks start at 1, got '0'"),
    ],
)
def test_what_cannot_be_told_is_not_guessed(put, text, words):
    with pytest.raises(ValueError, match=words):
        pm.read(put(text))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("user,ale,gin\nann,1,2\n", "orderings"),
        ("user,item,rank\nann,a,1\n", "rankings"),
        ("user,item\nann,a\n", "wide-clicks"),
    ],
)
def test_a_kind_that_does_not_fit_is_refused(put, text, kind):
    with pytest.raises(ValueError, match="the header"):
        pm.read(put(text), kind)


@pytest.mark.parametrize("kind", [None, "orderings"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("last,first\ntea,mate\nmate,tea\n", "line 1: 'last' is no known place"),
        ("first,last\ntea,mate\nmate,tea\n", "line 1: 'last' is no known place"),
        ("user,first,last\nu,tea,mate\nv,mate,tea\n", "line 1: 'last' is no known place"),
        ("last,first,second\na,b,c\nb,c,a\n", "line 1: 'last' is no known place"),
        ("zero,first,second\na,b,c\nb,c,a\n", "line 1: 'zero' is no known place"),
        ("twenty-first,first\ntea,mate\n", "'twenty-first' is no known place"),
        ("twentieth,first\ntea,mate\n", "no column is for place 2, but 'twentieth' comes after"),
        ("eleventh,first,second\na,b,c\n", "no column is for place 3, but 'eleventh'"),
    ],
)
def test_what_is_no_place_is_named(put, text, words, kind):
    with pytest.raises(ValueError, match=words):
        pm.read(put(text), kind)


PAIRS_NAMED = ["item1,item2", "item_a,item_b", "left,right", "a,b", "itemA,itemB"]


@pytest.mark.parametrize("names", PAIRS_NAMED)
@pytest.mark.parametrize("rows", ["1,1,2\n1,3,1\n2,2,1\n", "u,tea,mate\nv,mate,tea\n"])
@pytest.mark.parametrize("user", ["user", "judge"])
def test_comparisons_that_do_not_say_which_is_better_are_refused(put, user, names, rows):
    with pytest.raises(ValueError, match="if these are comparisons, name the columns user, bet"):
        pm.read(put(f"{user},{names}\n{rows}"))


@pytest.mark.parametrize("name", ["judge", "rater", "language", "turn"])
def test_a_column_beside_votes_is_asked_about_if_it_may_name_people(put, name):
    text = f"{name},left,right,winner\nx,tea,mate,left\ny,tea,mate,right\n"
    if name in ("judge", "rater"):
        words = f"beside the votes .left, right, winner. there is a column '{name}'"
        with pytest.raises(ValueError, match=words):
            pm.read(put(text))
        assert pm.read(put(text), columns={"user": name}).users.tolist() == ["x", "y"]
    else:
        assert pm.read(put(text)).is_vote


def test_two_items_or_two_places_are_no_comparison(put):
    assert pm.read(put("user,item1,item2\nu,1,2\nv,2,1\n")).rankings.tolist() == [[1, 2], [2, 1]]
    assert pm.read(put("user,first,second\nu,tea,mate\nv,mate,tea\n")).n_items == 2


def test_positions_are_ranks_or_clicks_as_one_says(put):
    path = put("user,item,position\nx,a,2\nx,b,1\n")
    assert pm.read(path, "long-rankings").rankings.tolist() == [[2, 1]]
    assert len(pm.read(path, "clicks").codes) == 2  # and no warning


@pytest.mark.parametrize(
    "header",
    [
        "user,better,worse",
        "assessor,bottom_item,top_item",
        "winner,loser",
        "model_a,model_b,winner",
        "judge,left,right,winner",
        "item1,item2,preferred",
    ],
)
@pytest.mark.parametrize("kind", ["rankings", "orderings", "wide-clicks"])
def test_comparisons_of_pairs_are_no_other_kind(put, header, kind):
    cells = [str(n) for n in range(1, header.count(",") + 2)]
    text = f"{header}\n{','.join(cells)}\n{','.join(cells[::-1])}\n"
    with pytest.raises(ValueError, match="line 1: these are comparisons of pairs"):
        pm.read(put(text), kind)
    frame = pd.DataFrame([range(1, len(cells) + 1)], columns=header.split(","))
    with pytest.raises(ValueError, match=r"use pm\.Preferences\.from_pairs, or pm\.read with kind"):
        pm.Preferences.from_rankings(frame)


def test_decimal_commas_between_semicolons(put):
    wide = pm.read(put("user;a;b;c\nx;1,5;1,5;3\ny;2,0;1,0;3,0\n"))
    assert wide.digest() == pm.read(put("user,a,b,c\nx,1.5,1.5,3\ny,2,1,3\n")).digest()
    long = put("user;item;rank\n0,5;1,5;1,5\n0,5;b;1,5\n0,5;c;3,0\n")
    assert pm.read(long).items.tolist() == ["1,5", "b", "c"]
    rated = put("user;item;rating\nu;a;4,5\nu;b;1,5\nu;c;3,5\n")
    assert pm.read(rated, min_rating=3.5).items.tolist() == ["a", "c"]
    with pytest.warns(pm.data.ColumnWarning, match="1 of 3 whose rating is below 3, the"):
        pm.read(rated)
    lists = put("user;1st;2nd\nu;1,5;0,5\n")
    assert sorted(pm.read(lists).items.tolist()) == ["0,5", "1,5"]
