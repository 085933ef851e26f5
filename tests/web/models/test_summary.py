"""What a model says of itself."""

import numpy as np

from pseudomallows.web.models.model import Model
from pseudomallows.web.models.summary import consensus
from webhelp import make_model


def test_ranks_are_binned_and_items_cut(tmp_path):
    posterior = make_model(tmp_path / "m.pm", n_items=130, n_draws=10)
    answer = consensus(Model(posterior, 1), 0)
    assert len(answer.items) == 100
    assert answer.edges == list(range(1, 131, 3))
    assert len(answer.probabilities[0]) == len(answer.edges)
    assert np.allclose(np.sum(answer.probabilities, axis=1), 1, atol=1e-4)
