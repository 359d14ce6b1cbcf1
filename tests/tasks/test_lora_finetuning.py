"""Fine-tuning with low-rank updates, from a sentence-level model to an exported one."""

import pytest
import torch

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.layers.lora import LoRALinear
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.decoding import logits

CONTEXT = ["--context-attention", "conditional", "--freeze-sentence-model"]
LORA = ["--lora-rank", "2", "--lora-on", "q,k,v,out,fc1,fc2", "--lora-dropout", "0.1"]
LINES = [["a b c", "d", "e e a", "<p>", "b"], ["c d"], ["a", "b", "c", "d", "e", "a b c d e a b"]]


@pytest.fixture(scope="module")
def sentence(prepared, tmp_path_factory):
    """Returns the checkpoint of a sentence-level model."""
    folder = tmp_path_factory.mktemp("sentence")
    return toy.train(prepared / "data-bin", folder, "--context", "none", "--max-update", "8")


@pytest.fixture(scope="module")
def finetuned(prepared, sentence, tmp_path_factory):
    """Returns the checkpoint of a model that began as that one, trained with updates and validated on the way."""
    folder, begin = tmp_path_factory.mktemp("finetuned"), ["--finetune-from-model", str(sentence)]
    more = ["--max-update", "6", "--eval-bleu", "--validate-interval-updates", "2", "--eval-bleu-args", '{"beam": 2}']
    return toy.train(prepared / "data-bin", folder, *CONTEXT, *LORA, *begin, *more)


def held_in(checkpoint):
    """Returns all that a checkpoint holds."""
    return torch.load(checkpoint, weights_only=True)


def translations(data, path, **options):
    """Returns the translations of everything, with scores."""
    search = SearchOptions(beam=3, max_len_b=10)
    made = DocumentTranslator.from_checkpoint(path, data=data, cpu=True, search=search, **options)
    assert not any(isinstance(module, LoRALinear) for module in made.models[0].modules())
    return made.translate_lines(LINES)


def test_only_context_and_updates_change(prepared, sentence, finetuned):
    before, after = toy.state(sentence), toy.state(finetuned)
    for name, value in before.items():
        torch.testing.assert_close(after[name], value, atol=0, rtol=0, msg=name)
    updates = [name for name in after if name.endswith(("lora_A", "lora_B"))]
    assert len(updates) == 2 * 2 * (6 + 10) and not set(updates) & before.keys()
    assert all(after[name].abs().sum() > 0 for name in updates)
    adam = held_in(finetuned)["last_optimizer_state"]["state"]
    moments = sum(state["exp_avg"].numel() for state in adam.values())
    _, _, model = toy.build(prepared / "data-bin", *CONTEXT, *LORA)
    assert moments == sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


@pytest.mark.slow
def test_resumed_training_equals_uninterrupted(prepared, sentence, tmp_path):
    begin = [*CONTEXT, *LORA, "--finetune-from-model", str(sentence), "--max-update"]
    whole = toy.train(prepared / "data-bin", tmp_path / "whole", *begin, "6")
    toy.train(prepared / "data-bin", tmp_path / "parts", *begin, "3")
    toy.assert_same_state(toy.train(prepared / "data-bin", tmp_path / "parts", *begin, "6"), whole)


def test_the_export_has_merged_weights(prepared, finetuned, tmp_path):
    toy.export(finetuned, tmp_path / "model.pt", data=prepared)
    held = held_in(tmp_path / "model.pt")
    assert not [name for name in held["model"] if "lora" in name]
    assert held["cfg"]["model"]["lora_rank"] == 0 and not held["cfg"]["model"]["freeze_sentence_model"]
    _, task, model = toy.build(prepared / "data-bin", *CONTEXT, *LORA)
    model.load_state_dict(held_in(finetuned)["model"], strict=True)
    model.set_num_updates(6)
    exported = load_ensemble(tmp_path / "model.pt", data=prepared).model
    sample = toy.batch_of(task)
    torch.testing.assert_close(logits(exported, sample), logits(model, sample), atol=1e-5, rtol=1e-5)


def test_translations_are_those_of_the_export(prepared, finetuned, tmp_path):
    toy.export(finetuned, tmp_path / "model.pt", data=prepared)
    for precision in ("float32", "int8"):
        of_export = translations(prepared, tmp_path / "model.pt", precision=precision)
        assert of_export == translations(prepared, finetuned, precision=precision)
    own, other = (toy.generate(prepared / "data-bin", one) for one in (finetuned, tmp_path / "model.pt"))
    assert own.hypotheses == other.hypotheses and own.hypotheses
