"""The systems of generation_speed.py translate the same sentences, counted the same way."""

from argparse import Namespace

import numpy as np
import pytest

from tests.support.documents import DOCUMENTS

SIZES = {"layers": 2, "width": 8, "ffn": 8, "heads": 2, "dropout": 0.1, "seed": 1, "more": []}
TOKENS = sum(len(s.split()) + 1 for document in DOCUMENTS["test"] for paragraph in document for s in paragraph)
TRAINED = sum(len(s.split()) + 1 for document in DOCUMENTS["train"] for paragraph in document for s in paragraph)


def test_all_systems_give_the_same_translations(data_bin):
    from benchmarks.speed import generation_speed

    systems = list(generation_speed.SYSTEMS)
    options = {"data_bin": str(data_bin), "every": 1, "max_tokens": 60, "beam": 2, "device": "cpu"}
    options.update(rounds=1, systems=systems)
    result = generation_speed.measure(Namespace(**options, **SIZES))
    assert {name: one["tokens"] for name, one in result.items()} == dict.fromkeys(systems, TOKENS)
    assert result["sentence"]["real_share"]["encoder"] == result["conditional"]["real_share"]["encoder"] == 1
    for one in result.values():
        assert all(0 < share <= 1 for share in one["real_share"].values())


def test_windows_hold_up_to_three_sentences_before(data_bin):
    from benchmarks.speed import generation_speed

    options = {"data_bin": str(data_bin), "every": 1, "max_tokens": 60, "beam": 2, "device": "cpu"}
    windows = generation_speed.Translator("4-to-4", Namespace(**options, **SIZES)).dataset
    to_one = generation_speed.Translator("4-to-1", Namespace(**options, **SIZES)).dataset
    breaks = [int(np.sum(windows.src[i].numpy() == windows.src_dict.index("<p>"))) for i in range(len(windows))]
    assert breaks == [0, 1, 2, 3, 0, 0, 1, 2, 3, 3, 3]
    assert windows.src_dict.string(windows.src[3]) == "a b c <p> d <p> e e a <p> b"
    assert windows.tgt_dict.string(windows.tgt[3]) == "c b a <p> d <p> a e e <p> b"
    assert to_one.tgt_dict.string(to_one.tgt[3]) == "b"


def test_time_is_split_by_kind_of_operation(data_bin):
    from benchmarks.lib.kinds import KINDS, REST
    from benchmarks.lib.systems import System
    from benchmarks.speed import profile_steps

    options = {"data_bin": str(data_bin), "max_tokens": 60, "device": "cpu"}
    system = System("conditional", Namespace(**options, **SIZES))
    phases = profile_steps.phases(system, 1)
    assert list(phases) == ["collating", "forward", "backward", "Adam"]
    kinds = profile_steps.kinds(profile_steps.training, system, 1)
    assert set(kinds) == {*KINDS, REST}
    assert min(kinds.values()) > 0


@pytest.mark.slow
def test_every_model_trains_on_the_same_target_tokens(data_bin):
    from benchmarks.lib.systems import System
    from benchmarks.speed import mechanism_speed, training_speed

    options = {"data_bin": str(data_bin), "max_tokens": 60, "device": "cpu", "warmup": 1, "rounds": 1, "steps": 1}
    args = Namespace(**options, **SIZES)
    for name in ("sentence", "concatenation-2to2", "concatenation-4to1", "previous-flat", "ca-res"):
        assert name in mechanism_speed.MODELS
        system = System(name, args)
        tokens = sum(system.target_tokens(sample) for sample in system.samples(0, len(system.batches)))
        assert tokens == TRAINED, name
    result = training_speed.measure(args, ["stock", "han", "concatenation-2to2"])
    assert all(one["ratio"] > 0 for one in result.values())
    assert "concatenate-target" in mechanism_speed.speed_table(result)


def test_real_shares_of_every_part(data_bin):
    from benchmarks.speed.real_share import PARTS, real_shares

    args = Namespace(data_bin=str(data_bin), max_tokens=60, device="cpu", share_batches=0, **SIZES)
    shares = {name: real_shares(name, args) for name in ("stock", "sentence", "conditional")}
    assert set(shares["stock"]) == set(shares["sentence"]) == set(PARTS) - {"context"}
    assert set(shares["conditional"]) == set(PARTS)
    assert all(0 < share <= 1 for of_system in shares.values() for share in of_system.values())
    for name in ("sentence", "conditional"):  # packed
        assert shares[name]["encoder fc1"] == shares[name]["decoder fc1"] == shares[name]["output"] == 1
    assert shares["stock"]["encoder fc1"] < 1
