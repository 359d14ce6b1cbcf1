"""Structures of tensors gathered in one buffer keep values, types and sharing, and are moved in one copy."""

from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler

import numpy as np
import torch

from docnmt_fairseq.batch import transfer
from docnmt_fairseq.batch.layout import ToSentences, WithinSentences
from tests.support.documents import make_layout


@dataclass(frozen=True)
class Part:
    """Part of a plan."""

    index: torch.Tensor
    name: str = "part"


def structure():
    shared = torch.arange(5)
    twice = Part(torch.arange(4))
    one = torch.arange(3)[1:2].expand(1)[:, None].as_strided((1, 1), (0, 0))  # a stride as NumPy sets it
    return {
        "bytes": torch.tensor([True, False, True]),
        "parts": [Part(shared), Part(torch.arange(3, dtype=torch.int32)), Part(shared, "again")],
        "none": (None, torch.zeros(0, 4, dtype=torch.int64), one),
        "transposed": torch.arange(6.0, dtype=torch.float64).view(2, 3).t(),
        "array": np.arange(2),
        "twice": [twice, {"again": twice}],
    }


def tensors_of(value):
    found = {}
    transfer._collect(value, found, set())
    return list(found.values())


def assert_in_one_buffer(value):
    assert len({tensor.untyped_storage().data_ptr() for tensor in tensors_of(value)}) == 1


def test_gathered_tensors_keep_values_types_and_sharing():
    before = structure()
    after = transfer.gathered(before)
    assert_in_one_buffer(after)
    for one, other in zip(tensors_of(before), tensors_of(after)):
        assert one.dtype == other.dtype and torch.equal(one, other)
    assert after["parts"][0].index is after["parts"][2].index and after["parts"][2].name == "again"
    assert after["twice"][0] is after["twice"][1]["again"]
    assert after["array"] is before["array"] and after["none"][0] is None


def test_gathered_tensors_are_aligned():
    for tensor in tensors_of(transfer.gathered(structure())):
        assert tensor.storage_offset() * tensor.element_size() % transfer.ALIGNMENT == 0


def test_gathered_structure_is_moved_without_gathering_again(monkeypatch):
    gathered = transfer.gathered(structure())
    monkeypatch.setattr(transfer, "_packed", None)
    moved = transfer.to_device(gathered, torch.device("meta"))
    assert [x.shape for x in tensors_of(moved)] == [x.shape for x in tensors_of(gathered)]


def test_pickled_layout_is_one_buffer():
    layout = make_layout([3, 1, 4], [2, 1]).with_plans([WithinSentences(), ToSentences()]).gathered()
    received = ForkingPickler.loads(ForkingPickler.dumps(layout))
    assert_in_one_buffer(received)
    for one, other in zip(tensors_of(layout), tensors_of(received)):
        assert torch.equal(one, other)


def test_plan_made_on_demand_is_moved_in_one_copy(monkeypatch):
    copies, copied = [], transfer._copied
    monkeypatch.setattr(transfer, "_copied", lambda *given: copies.append(given) or copied(*given))
    layout = make_layout([3, 1, 4], [2, 1]).to(torch.device("meta"))
    plan = layout.plan(WithinSentences())
    assert len(copies) == 2 and {tensor.device.type for tensor in tensors_of(plan)} == {"meta"}
    assert layout.plan(WithinSentences()) is plan and len(copies) == 2
