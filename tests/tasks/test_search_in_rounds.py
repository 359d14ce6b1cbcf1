"""Target-side context: sentences are translated one after another, with previous translations as context."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from fairseq.sequence_generator import SequenceGenerator

from docnmt_fairseq.models.encoder_outputs import ENCODER_OUTPUTS, EncoderOutputs
from docnmt_fairseq.search.sequential_decoding import decode_sequentially
from tests.support import toy
from tests.support.decoding import assert_same_hypotheses, translate
from tests.support.documents import IDS, text_of, write_lines
from tests.support.preprocess import fairseq_preprocess

FIRST = {0, 6, 8}  # of their documents
SEARCH = ["--beam", "3", "--max-len-b", "10"]
VARIANTS = {
    "target": ["--target-context-attention", "han", "--context-sentences", "2"],
    "both": ["--target-context-attention", "han", "--context-attention", "han"],
    "everywhere": [
        "--target-context-attention", "han", "--context-attention", "memory",
        "--decoder-context-attention", "sentence-encodings",
        "--encoder-normalize-before", "--decoder-normalize-before",
    ],
}  # fmt: skip


@pytest.fixture(scope="module", params=["target", "everywhere"])
def checkpoint(request, data_bin, tmp_path_factory):
    """Returns a model trained until it ends sentences at different steps."""
    arguments = [*VARIANTS[request.param], "--context-init", "xavier", "--max-update", "60"]
    return toy.train(data_bin, tmp_path_factory.mktemp(request.param), *arguments)


def with_translations(task, found):
    """All sentences as one batch whose target sides are these translations, and the tokens of each."""
    dataset = task.dataset("test")
    sample = dataset.collater([dataset[number] for number in range(3)])
    tokens = [found[number]["tokens"] for number in sample["id"].tolist()]
    previous = [torch.cat([torch.tensor([task.target_dictionary.eos()]), sentence[:-1]]) for sentence in tokens]
    padded = torch.nn.utils.rnn.pad_sequence(previous, batch_first=True, padding_value=task.target_dictionary.pad())
    return {**sample, "net_input": {**sample["net_input"], "prev_output_tokens": padded}}, tokens


def test_scores_equal_those_of_teacher_forcing(built):
    task, model = built
    found = translate(task, [model], [[0, 1, 2]], beam=4)
    assert len({len(hypothesis["tokens"]) for hypothesis in found.values()}) > 2
    sample, tokens = with_translations(task, found)
    with torch.no_grad():
        output = model(**sample["net_input"])
    of_words = model.get_normalized_probs(output, log_probs=True)
    for number, sentence, of_sentence in zip(sample["id"].tolist(), tokens, of_words):
        expected = of_sentence[: len(sentence)].gather(1, sentence[:, None]).squeeze(1)
        torch.testing.assert_close(found[number]["positional_scores"], expected, atol=1e-5, rtol=1e-4)


def test_a_batch_equals_its_documents(built):
    task, model = built
    alone = translate(task, [model], [[0], [1], [2]], beam=4)
    for batches in ([[2, 0, 1]], [[1, 2], [0]]):
        assert_same_hypotheses(translate(task, [model], batches, beam=4), alone)


def corrupted(data_bin, folder):
    """Returns a data-bin of the same test sources, whose references are other words, of other lengths."""
    lines = [" ".join(words) for words in text_of("test")[0]]
    write_lines(folder / "test.src", lines)
    write_lines(folder / "test.tgt", [line if line in ("", "<p>") else f"e e {line} d" for line in lines])
    arguments = ["-s", "src", "-t", "tgt", "--testpref", str(folder / "test"), "--destdir", str(folder / "bin")]
    arguments += ["--srcdict", str(data_bin / "dict.src.txt"), "--joined-dictionary"]
    fairseq_preprocess(arguments)
    return folder / "bin"


def test_references_have_no_influence(data_bin, checkpoint, tmp_path):
    other = corrupted(data_bin, tmp_path)
    expected = toy.generate(data_bin, checkpoint, *SEARCH)
    found = toy.generate(other, checkpoint, *SEARCH)
    references = [[line for line in part.text.splitlines() if line.startswith("T-")] for part in (expected, found)]
    assert references[0] != references[1]
    assert found.hypotheses == expected.hypotheses and sorted(found.hypotheses) == IDS
    scored = [toy.generate(folder, checkpoint, "--score-reference").hypotheses for folder in (data_bin, other)]
    assert all(scored[0][number] != scored[1][number] for number in IDS)


def test_previous_translations_are_used(built):
    """Takes the first translations away, and nothing else."""
    task, model = built
    dataset = task.dataset("test")
    sample = dataset.collater([dataset[0]])
    generator = task.build_generator([model], GenerationConfig(beam=1, max_len_b=12), seq_gen_cls=SequenceGenerator)

    def scores(forgetful):
        def search(batch, prefix_tokens):
            for output in batch["net_input"]["encoded"].values():
                if forgetful:
                    output[ENCODER_OUTPUTS] = [replace(EncoderOutputs.of(output), previous=None)]
            return generator.generate([model], batch)

        hypotheses = decode_sequentially(search, [model], sample)
        return [round(float(of_sentence[0]["positional_scores"][0]), 6) for of_sentence in hypotheses]

    with_context, without = scores(False), scores(True)
    assert with_context[0] == without[0]
    assert all(a != b for a, b in zip(with_context[1:], without[1:]))


@pytest.mark.slow
def test_interactive_uses_previous_translations(data_bin, tmp_path):
    """A model with target-side context alone translates line by line what it translates at once."""
    arguments = [*VARIANTS["target"], "--context-init", "xavier", "--max-update", "60"]
    trained = toy.train(data_bin, tmp_path, *arguments)
    write_lines(tmp_path / "input", [" ".join(words) for words in text_of("test")[0]])
    expected = toy.generate(data_bin, trained, *SEARCH).hypotheses
    for buffer in ("1", "3"):
        found = toy.interactive(data_bin, trained, tmp_path / "input", *SEARCH, "--buffer-size", buffer)
        assert found.hypotheses == expected, buffer
    alone = toy.interactive(data_bin, trained, tmp_path / "input", *SEARCH, "--context", "none").hypotheses
    assert {n for n in IDS if alone[n] != expected[n]} and all(alone[n] == expected[n] for n in FIRST)


@pytest.mark.slow
def test_finetuning_with_target_context(data_bin, tmp_path):
    encoder = ["--context-attention", "han"]
    first = toy.train(data_bin, tmp_path / "first", *encoder, "--max-update", "20")
    arguments = [*VARIANTS["both"], "--finetune-from-model", str(first), "--lr", "0"]
    joint = toy.train(data_bin, tmp_path / "joint", *arguments, "--max-update", "1")
    assert toy.generate(data_bin, joint, *SEARCH).hypotheses == toy.generate(data_bin, first, *SEARCH).hypotheses


def test_number_of_rounds(built):
    task, model = built
    dataset = task.dataset("test")
    sample = dataset.collater([dataset[number] for number in range(3)])
    generator = task.build_generator([model], GenerationConfig(beam=2, max_len_b=12), seq_gen_cls=SequenceGenerator)
    sizes, encoded = [], []
    hook = model.encoder.register_forward_hook(lambda *_: encoded.append(1))
    inner = generator.generate
    generator.generate = lambda models, batch, **rest: (
        sizes.append(len(batch["net_input"]["src_tokens"])) or inner(models, batch, **rest)
    )
    task.inference_step(generator, [model], sample)
    hook.remove()
    counts = np.array([4, 1, 6])
    assert sizes == [int((counts > number).sum()) for number in range(6)]
    assert len(encoded) == 1
