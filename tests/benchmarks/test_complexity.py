import math
from argparse import Namespace

import numpy as np
import torch


def test_an_exponent_is_that_of_a_power():
    from benchmarks.speed.complexity import exponent

    points = [{"sentences": n, "core": 3 * n**1.7, "layer": None} for n in (32, 64, 512)]
    assert math.isclose(exponent(points, "sentences", "core"), 1.7)
    assert math.isnan(exponent(points, "sentences", "layer"))


def test_every_layer_of_the_table_takes_a_step():
    from benchmarks.speed.layers import CORES, LAYERS, Document, module, step

    torch.manual_seed(0)
    document = Document(6, 3, 2, 4, "torch")
    assert list(LAYERS) == list(CORES)
    for name in LAYERS:
        step(name, document, whole=False)()
        assert CORES[name](document)().isfinite().all()
        if name != "matrix":
            step(name, document, whole=True)()
            out = module(name, document)()
            assert out.shape == ((6 if name == "source2token" else 18), 8)


def test_the_crossover_is_where_the_tree_stays_faster():
    from benchmarks.speed.tree_crossover import crossover

    ratios = {16: 2.0, 32: 0.9, 64: 1.1, 128: 0.8, 256: 0.5}
    points = [{"sentences": n, "t": 4, "times": {"torch": {"ratio": ratio}}} for n, ratio in ratios.items()]
    assert crossover(points, "torch", 4) == "128 sentences"
    assert crossover(points[:3], "torch", 4) == "not reached"


def test_a_walk_that_keeps_nearly_all_finds_nearly_all():
    from benchmarks.speed.tree_crossover import document, share_found

    args = Namespace(kernels=["torch"], heads=2, head_dim=8)
    torch.manual_seed(0)
    shares = [share_found(document(33, 66), t, 0.0, "cumulative", args) for t in (1, 8, 32)]
    assert shares == sorted(shares) and shares[0] < 0.9 and shares[2] > 0.99


def test_documents_have_the_words_asked_for():
    from benchmarks.speed.tree_crossover import document

    layout = document(7, 30)
    assert layout.tokens.total == 30 and layout.tokens.rows == 7 and np.ptp(layout.tokens.lengths) == 1
