"""Where the marks of the report's pictures go."""

import numpy as np
import pytest

from pseudomallows.show.report import heat, in_cells

LAW = np.random.default_rng(1).dirichlet(np.ones(130), size=3)  # [item, rank - 1]


def test_cells_hold_all_of_the_probability():
    cells, size = in_cells(LAW, 125)
    assert size == 3
    assert cells.shape == (3, 42)
    assert cells.sum(axis=1) == pytest.approx(LAW[:, :125].sum(axis=1))
    assert cells[1, 1] == pytest.approx(LAW[1, 3:6].sum())


def test_the_likeliest_cell_is_the_strongest_and_none_is_drawn_where_none_is_seen():
    found = heat(np.array([[0.64, 0.16, 0.2], [0.0, 1e-4, 0.9999]]), 3)
    assert found.strongest == 0.9999
    assert [place for place, _ in found.rows[0]] == pytest.approx([0, 1 / 3, 2 / 3])
    assert [strength for _, strength in found.rows[0]] == pytest.approx([0.8, 0.4, 0.447], abs=1e-3)
    assert found.rows[1] == [(pytest.approx(2 / 3), 1.0)]
    assert found.marks == [(rank, pytest.approx((rank - 0.5) / 3), "middle") for rank in (1, 2, 3)]


def test_many_ranks_have_three_numbers_over_them():
    found = heat(LAW, 125)
    assert (found.width, found.size) == (126, 3)
    assert [(rank, anchor) for rank, _, anchor in found.marks] == [
        (1, "start"),
        (62, "middle"),
        (125, "end"),
    ]
