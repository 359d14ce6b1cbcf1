"""Task concatenated_translation through fairseq's commands."""

import math
import random
import re

import pytest
import torch

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.positions import segment_distance
from tests.reference.concatenation import windows
from tests.support import toy
from tests.support.documents import text_of, write_lines

TASK = "concatenated_translation"
IDS = [0, 1, 2, 4, 6, 8, 9, 10, 11, 12, 13]
SEARCH = ["--max-len-b", "30"]


def train(data_bin, folder, *extra, arch="transformer"):
    return toy.train(data_bin, folder, *extra, task=TASK, arch=arch)


def generate(data_bin, checkpoint, *extra):
    return toy.generate(data_bin, checkpoint, *SEARCH, *extra, task=TASK)


def printed(text, letter):
    return {int(number): rest for number, rest in re.findall(rf"^{letter}-(\d+)\t(.*)$", text, re.MULTILINE)}


@pytest.fixture(scope="module")
def one(data_bin, tmp_path_factory):
    """Returns a 2-to-1 model with segment embeddings after a few updates."""
    options = ["--segment-embeddings", "--max-update", "20"]
    return train(data_bin, tmp_path_factory.mktemp("one"), *options, arch="concatenation_transformer")


@pytest.fixture(scope="module")
def both(data_bin, tmp_path_factory):
    """Returns a 3-to-3 model of fairseq's own after enough updates to write breaks."""
    options = ["--concatenate-source", "3", "--concatenate-target", "3", "--max-update", "120"]
    return train(data_bin, tmp_path_factory.mktemp("both"), *options)


@pytest.mark.parametrize(("arch", "target"), [("transformer", "1"), ("concatenation_transformer_tiny", "2")])
def test_models_train_and_translate(data_bin, tmp_path, arch, target, caplog):
    caplog.set_level("INFO")
    options = ["--concatenate-target", target, "--max-update", "12", "--eval-bleu", "--valid-subset", "train"]
    lengths = '{"max_len_b": 9, "min_len": 5}'
    trained = train(data_bin, tmp_path, *options, "--eval-bleu-args", lengths, arch=arch)
    search = ["--max-len-b", "9", "--min-len", "5"]
    toy.assert_bleu_is_of_translations(caplog.text, data_bin, trained, *search, task=TASK)
    result = generate(data_bin, trained, "--beam", "2")
    assert sorted(result.hypotheses) == IDS


def test_the_view_is_restored_and_windows_are_printed(data_bin, both, one):
    for checkpoint, most in ((both, 3), (one, 2)):
        text = generate(data_bin, checkpoint).text
        expected = windows(text_of("test")[0], most, "<brk>")
        assert printed(text, "S") == {number: " ".join(words) for number, words in expected.items()}
        alone = windows(text_of("test")[1], 1, "<brk>")
        assert printed(text, "T") == {number: " ".join(words) for number, words in alone.items()}
        assert "<brk>" not in "".join(printed(text, "H").values())


def raw_hypotheses(data_bin, checkpoint, *extra):
    """Returns {id: (tokens, positional scores)} of whole outputs, found without the task's own cutting."""
    from fairseq import checkpoint_utils, options, tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.tasks.translation import TranslationTask

    arguments = [str(data_bin), "--user-dir", toy.PLUGIN, "--task", TASK, "--path", str(checkpoint), *SEARCH, *extra]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_generation_parser(), arguments))
    task = tasks.setup_task(cfg.task)
    models, _ = checkpoint_utils.load_model_ensemble([str(checkpoint)], task=task)
    task.load_dataset("test")
    dataset = task.dataset("test")
    batch = dataset.collater([dataset[number] for number in range(len(dataset))])
    models[0].eval()
    generator = task.build_generator(models, cfg.generation)
    found = TranslationTask.inference_step(task, generator, models, batch)
    return {
        number: (task.tgt_dict.string(several[0]["tokens"]).split(), several[0]["positional_scores"].tolist())
        for number, several in zip(batch["id"].tolist(), found)
    }


@pytest.mark.parametrize(
    ("most", "search"),
    [
        (3, ["--beam", "3", "--lenpen", "0.6"]),
        (3, ["--unnormalized", "--min-len", "6"]),
        (1, ["--unnormalized", "--min-len", "6"]),
    ],
)
def test_the_translation_is_the_sentence_in_the_place_of_the_last_of_the_window(data_bin, both, most, search):
    search = [*search, "--concatenate-source", str(most)]
    places = {number: words.count("<brk>") for number, words in windows(text_of("test")[0], most, "<brk>").items()}
    raw = raw_hypotheses(data_bin, both, *search)
    assert sum("<brk>" in tokens for tokens, _ in raw.values()) > 2  # else this tests nothing
    result = generate(data_bin, both, *search)
    scores = printed(result.text, "P")
    for number, (tokens, positional) in raw.items():
        ends = [i + 1 for i, token in enumerate(tokens) if token == "<brk>"] + [len(positional)]
        starts = [0, *ends]
        place = min(places[number], len(ends) - 1)
        start, end = starts[place], ends[place]
        kept = positional[start:end]
        length = len(kept) ** (0.6 if "0.6" in search else 1) if "--unnormalized" not in search else 1
        assert result.hypotheses[number][0] == " ".join(token for token in tokens[start:end] if token != "<brk>")
        assert result.hypotheses[number][1] == pytest.approx(sum(kept) / length / math.log(2), abs=2e-3)
        assert [float(score) for score in scores[number].split()] == pytest.approx(
            [score / math.log(2) for score in kept], abs=1e-3
        )


def test_other_documents_have_no_influence(data_bin, one, both, tmp_path):
    lines = {document: text_of("test")[0] for document in ("before", "changed")}
    first = lines["before"].index([])
    lines["changed"] = [words if not words or words == ["<p>"] or number > first else ["e", "e"]
                        for number, words in enumerate(lines["changed"])]  # fmt: skip
    for checkpoint in (one, both):
        results = []
        for text in lines.values():
            write_lines(tmp_path / "input", [" ".join(words) for words in text])
            results.append(interactive(data_bin, checkpoint, tmp_path))
        later = [number for number in IDS if number > first]
        assert [results[0][number] for number in later] == [results[1][number] for number in later]
        assert any(results[0][number] != results[1][number] for number in IDS if number < first)


def interactive(data_bin, checkpoint, folder, *extra):
    options = ["--buffer-size", "100", *SEARCH, *extra]
    return toy.interactive(data_bin, checkpoint, folder / "input", *options, task=TASK).hypotheses


@pytest.mark.parametrize("buffer", ["1", pytest.param("3", marks=pytest.mark.slow)])
def test_interactive_translates_as_generate_does(data_bin, one, both, tmp_path, buffer):
    write_lines(tmp_path / "input", [" ".join(words) for words in text_of("test")[0]])
    for checkpoint in (one, both):
        expected = generate(data_bin, checkpoint).hypotheses
        assert interactive(data_bin, checkpoint, tmp_path, "--buffer-size", buffer) == expected


@pytest.mark.parametrize("search", ["--score-reference", "--nbest 2 --beam 2", "--sampling --sampling-topk 3"])
def test_search_options_work(data_bin, both, search):
    text = toy.generate_text(data_bin, both, *SEARCH, *search.split(), task=TASK)
    assert {int(line[2:].split("\t")[0]) for line in text.splitlines() if line.startswith("H-")} == set(IDS)
    if search == "--score-reference":
        assert printed(text, "T") == {number: rest.split("\t")[1] for number, rest in printed(text, "H").items()}


def test_options_for_single_targets_only(data_bin, one, both):
    generate(data_bin, one, "--prefix-size", "1")
    generate(data_bin, one, "--print-alignment", "hard")
    for option in (["--prefix-size", "1"], ["--print-alignment", "hard"], ["--constraints"]):
        with pytest.raises(InputError, match=option[0]):
            generate(data_bin, both, *option)


def test_segment_distance():
    tokens = torch.tensor([[1, 1, 7, 9, 8, 9, 6, 2], [5, 9, 9, 4, 2, 1, 1, 1]])
    assert segment_distance(tokens, 9).tolist() == [[2, 2, 2, 2, 1, 1, 0, 0], [2, 2, 1, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("segments", [[], pytest.param(["--segment-embeddings"], marks=pytest.mark.slow)])
def test_finetuning_of_a_sentence_level_model(data_bin, tmp_path, segments):
    sentence = toy.train(data_bin, tmp_path / "sentence", "--max-update", "3", task="translation", arch="transformer")
    options = ["--break-symbol", "<p>", "--finetune-from-model", str(sentence), "--max-update", "1", "--lr", "1e-12"]
    trained = train(data_bin, tmp_path / "document", *options, *segments, arch="concatenation_transformer")
    stock = toy.generate(data_bin, sentence, *SEARCH, "--required-batch-size-multiple", "1", task="translation")
    ours = generate(data_bin, trained, "--concatenate-source", "1").hypotheses
    assert ours == {number: stock.hypotheses[number] for number in IDS}


@pytest.mark.slow
def test_resumed_training_equals_uninterrupted(data_bin, tmp_path):
    options = ["--concatenate-source", "3", "--concatenate-target", "2", "--dropout", "0.1"]
    whole = train(data_bin, tmp_path / "whole", *options, "--save-interval-updates", "5", "--max-update", "10")
    train(data_bin, tmp_path / "parts", *options, "--max-update", "5")
    parts = train(data_bin, tmp_path / "parts", *options, "--max-update", "10")
    toy.assert_same_state(whole, parts)


@pytest.fixture(scope="module")
def copying(tmp_path_factory):
    """Returns a data-bin in which the translation of a sentence is the previous sentence."""
    from tests.support.preprocess import fairseq_preprocess

    folder, chance = tmp_path_factory.mktemp("copying"), random.Random(1)
    for split, number in (("train", 200), ("valid", 5), ("test", 20)):
        source, target = [], []
        for _ in range(number):
            words = chance.choices("abcdefgh", k=6)
            source += [*words, ""]
            target += [words[0], *words[:-1], ""]
        write_lines(folder / f"{split}.src", source)
        write_lines(folder / f"{split}.tgt", target)
    prefixes = [f"--{split}pref={folder / split}" for split in ("train", "valid", "test")]
    arguments = ["-s", "src", "-t", "tgt", *prefixes, "--destdir", str(folder / "bin"), "--joined-dictionary"]
    fairseq_preprocess(arguments)
    return folder / "bin"


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target"), [("2", "1"), ("2", "2"), ("1", "1")])
def test_context_is_learned(copying, tmp_path, source, target):
    options = ["--concatenate-source", source, "--concatenate-target", target, "--segment-embeddings"]
    options += ["--max-tokens", "400", "--encoder-embed-dim", "32", "--decoder-embed-dim", "32"]
    # Without warm-up and clipping, rounding decides whether the loss diverges in the end.
    options += ["--max-update", "250", "--lr-scheduler", "inverse_sqrt", "--warmup-updates", "50", "--clip-norm", "0.5"]
    trained = train(copying, tmp_path, *options, arch="concatenation_transformer")
    text = generate(copying, trained).text
    wanted, found = printed(text, "T"), printed(text, "H")
    right = sum(found[number].split("\t")[1] == words for number, words in wanted.items()) / len(wanted)
    assert right > 0.95 if source == "2" else right < 0.5
