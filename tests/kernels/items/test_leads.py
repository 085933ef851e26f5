"""How far items are ahead of a hidden one, against plain Python."""

import numpy as np
import pytest

from helpers import interpreted
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.items.leads import clear_clicks, fill_leads

pytestmark = pytest.mark.kernel
CLICKS = ClickRows(np.array([0, 2, 2, 5]), np.array([1, 3, 0, 2, 5], dtype=np.int32))
HIDDEN = np.array([0, 4, 3])


def plain_leads(tables, places):
    """By the definition: of what is not clicked, ahead of the hidden item by some part or level."""
    found = [[] for _ in tables]
    sizes = []
    for row, hidden in enumerate(HIDDEN):
        clicked = CLICKS.codes[CLICKS.starts[row] : CLICKS.starts[row + 1]]
        items = [item for item in places[row] if item >= 0 and item not in clicked]
        leads = [[scores[row, i] - scores[row, hidden] for i in items] for scores in tables]
        kept = [place for place in range(len(items)) if max(one[place] for one in leads) >= 0]
        sizes.append(len(kept))
        for mine, one in zip(found, leads, strict=True):
            mine += [one[place] for place in kept]
    return found, sizes


@pytest.mark.parametrize("kernel", [fill_leads, interpreted(fill_leads)])
@pytest.mark.parametrize("some", [True, False])
def test_what_is_ahead_by_some_part_is_kept(kernel, some):
    tables = np.random.default_rng(1).integers(0, 9, (2, 3, 6)).astype(np.float32)
    tables[:, np.arange(3), HIDDEN] += 2
    places = np.array([[0, 1, 4, -1], [2, -1, 4, 5], [-1, 1, 3, 4]])
    given = places if some else np.empty((3, 0), dtype=np.int64)
    sizes, leads = np.zeros(3, dtype=np.int64), np.empty((2, 18), np.float32)
    n_filled = kernel(CLICKS, tables, HIDDEN, given, sizes, leads)
    exact, exact_sizes = plain_leads(tables, places if some else [range(6)] * 3)
    assert sizes.tolist() == exact_sizes
    assert n_filled == sum(exact_sizes)
    assert leads[:, :n_filled].tolist() == exact
    assert n_filled < sum(6 - np.diff(CLICKS.starts))


def test_what_was_clicked_has_no_score():
    scores = np.ones((3, 6))
    clear_clicks(CLICKS, scores)
    assert [np.flatnonzero(row == 0).tolist() for row in scores] == [[1, 3], [], [0, 2, 5]]
