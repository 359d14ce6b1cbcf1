"""Random corpora, each through ``docnmt prepare``, an epoch's batches, a training step, and a translation.

    python -m benchmarks.robustness.corpora [--corpora 10000] [--seed 1]

Scripts, white space, controls, empty and over-long sentences, repeated boundaries, markup and marks that look like the
package's own, in random numbers of documents; prepared with random options, trained by a random model. Every sentence
must be accounted for: those whose text is nothing are dropped and counted, those that are too long for the model are
skipped and counted, of every other one there is one target in an epoch and one translation, in its document, in order.
Whatever is raised must be ``InputError``. Writes benchmarks/results/corpora.md and .json; exit status 1: faults.
"""

import argparse
import contextlib
import copy
import io
import json
import logging
import random
import re
import tempfile
import time
import traceback
from argparse import Namespace
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
import torch
from fairseq.data.indexed_dataset import MMapIndexedDataset
from tqdm import tqdm

from benchmarks.lib.machine import command, machine, publish, table
from benchmarks.lib.systems import System, configuration, sentences_of
from docnmt_fairseq import cli
from docnmt_fairseq.errors import InputError

ALPHABETS = (
    "abcdefgh", "ABCdefÄöß", "абвгд", "ابجد", "你好世界吗", "あいう", "กขค", "नमस्ते", "😀🎉👩‍👩‍👧", "e\u0301o\u0308",
    "0123456789", ".,;:!?-–…«»\"'&<>|[]{}",
)  # fmt: skip
SPACES = (" ", "  ", "\t", "\u00a0", "\u2003", "\u3000", "\u200b", " \u200e")
ODD = (
    "<p>x", "</p>", "<s>", "</s>", "<unk>", "<pad>", "@@", "a@@ b", "\u2581", "&amp;", "&#124;", "|||", "<break>",
    "\x07", "\x85", "\u2028", "\ufeff", "\ufffd", "__de__", "</w>", "\\", "%s", "{}", "#", "-", "\u200d",
)  # fmt: skip
NOTHING = ("", " ", "\t ", "\u200b", "\u00a0\u00a0", "\x01", "\ufeff \u200e")
MODELS = (
    "sentence", "conditional", "memory", "memory-3", "tree", "han", "han-target", "han-both", "concatenation-2to2",
    "sentence-attention", "context-aware", "previous-flat",
)  # fmt: skip
LONGEST = 40  # tokens that a sentence may have for the model
SIDES = ("en", "de")

Pair = Tuple[str, str]


def sentence(chance: random.Random) -> str:
    """Returns a sentence that shows."""
    words = []
    for _ in range(chance.choice((1, 1, 2, 3, 5, 8, 60))):
        alphabet = chance.choice(ALPHABETS)
        word = "".join(chance.choice(alphabet) for _ in range(chance.randint(1, 6)))
        words.append(chance.choice(ODD) if chance.random() < 0.1 else word)
    return "x" + "".join(word + chance.choice(SPACES) for word in words)


def corpus(chance: random.Random) -> List[List[List[Pair]]]:
    """Returns documents of paragraphs of pairs; of some a side is nothing."""

    def pair() -> Pair:
        sides = [sentence(chance), sentence(chance)]
        if chance.random() < 0.05:
            sides[chance.randrange(2)] = chance.choice(NOTHING)
        return sides[0], sides[1]

    return [
        [[pair() for _ in range(chance.randint(1, 4))] for _ in range(chance.choice((1, 1, 2, 3)))]
        for _ in range(chance.choice((1, 2, 3, 6, 12)))
    ]


def shows(pair: Pair) -> bool:
    """Whether both sides have text: all sentences do that are not of ``NOTHING``."""
    return all(text not in NOTHING for text in pair)


def write(documents: Sequence[Sequence[Sequence[Pair]]], prefix: Path, form: str, chance: random.Random) -> List[str]:
    """Writes a corpus; returns the arguments of ``docnmt prepare`` that read it."""
    if form == "jsonl":
        rows = [{side: [one[n] for part in text for one in part] for n, side in enumerate(SIDES)} for text in documents]
        path = prefix.with_suffix(".jsonl")
        path.write_text("".join(json.dumps(row, ensure_ascii=chance.random() < 0.5) + "\n" for row in rows), "utf-8")
        return [str(path)]
    lines: List[Pair] = []
    for text in documents:
        for number, part in enumerate(text):
            # what is empty on both sides, or on one, is told apart from a boundary by --on-empty alone
            lines += [tuple(one.strip("\n") or "\u200b" for one in pair) for pair in part]
            if chance.random() < 0.5 or number + 1 < len(text):
                lines.append(("<p>", "<p>"))
        lines += [("", "")] * chance.choice((1, 1, 1, 2, 3))
    if chance.random() < 0.3:
        lines.pop()
    end = chance.choice(("\n", "\n", "\r\n"))
    for n, side in enumerate(SIDES):
        Path(f"{prefix}.{side}").write_text("".join(line[n] + end for line in lines), "utf-8", newline="")
    return [str(prefix)]


def prepare(documents: List[List[List[Pair]]], folder: Path, chance: random.Random) -> Path:
    """Prepares a corpus with random options; returns the output."""
    form = chance.choice(("delimited", "delimited", "jsonl"))
    source = write(documents, folder / "text", form, chance)
    subwords = chance.choice(("none", "none", "unigram", "bpe"))
    words = ["-s", SIDES[0], "-t", SIDES[1], "--format", form, "--train", *source, "--test", *source]
    words += ["--output", str(folder / "out"), "--on-empty", "drop", "--subwords", subwords]
    characters = len({character for text in documents for part in text for pair in part for character in "".join(pair)})
    words += ["--tokenizer", chance.choice(("none", "moses"))]
    pieces = characters + chance.choice((8, 20))
    words += ["--vocab-size", str(pieces)] if subwords != "none" else []
    words += ["--seed", str(chance.randrange(9)), *(["--truecase"] if chance.random() < 0.3 else [])]
    words += ["--separate"] if chance.random() < 0.3 else []
    shards = chance.choice((1, 1, 1, 2)) if len(documents) > 3 else 1
    words += ["--shards", str(shards), "--fit-only"] if shards > 1 else []
    docnmt("prepare", *words, "--workers", "1")
    for shard in range(shards if shards > 1 else 0):
        docnmt("prepare-shard", "--output", str(folder / "out"), "--shard", str(shard))
    return folder / "out"


def docnmt(*words: str) -> None:
    """Runs a command in this process; raises ``InputError`` where it ends with a line."""
    told = io.StringIO()
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
        status = cli.main([*words])
    if status == 2:
        raise InputError(told.getvalue().strip().splitlines()[-1])
    assert status == 0, told.getvalue()


def account(output: Path, kept: Sequence[Sequence[Pair]], name: str, chance: random.Random) -> Dict[str, int]:
    """Trains a model for a step and translates; raises ``AssertionError`` where a sentence is not accounted for."""
    bins = sorted(output.glob("data-bin*"))
    trained = translated = skipped = 0
    order = []
    for number, data_bin in enumerate(bins):
        system = system_of(name, data_bin, chance.choice((50, 200)))
        samples = list(system.samples(0, len(system.batches)))
        trained += targets_of(system, samples)
        skipped += too_long(system, "train")
        for sample in samples[:1]:  # none if all are too long
            loss = system.task.train_step(sample, system.model, system.criterion, system.optimizer, 0)[0]
            assert loss.isfinite(), "the loss is not finite"
            system.optimizer.step()
        if number == 0:
            order = translate(system)
            translated = len(order) + too_long(system, "test")
    sentences = sum(len(document) for document in kept)
    assert trained + skipped == sentences, f"{sentences} sentences, {trained} trained on, {skipped} skipped"
    assert translated == sentences, f"{sentences} sentences, {translated} translated or skipped"
    assert len(set(order)) == len(order), "a sentence is translated twice"
    assert output_lines(output, "test") == [len(document) for document in kept], "documents begin elsewhere"
    return {"sentences": sentences, "skipped": skipped}


@cache
def configured(name: str) -> Any:
    """Returns the configuration of a model; to make it takes longer than all that is done with it."""
    sizes = {"layers": 2, "width": 4, "ffn": 4, "heads": 1, "dropout": 0.0, "seed": 1, "max_tokens": 50}
    more = ["--max-source-positions", str(LONGEST), "--max-target-positions", str(LONGEST)]
    more += ["--skip-invalid-size-inputs-valid-test", "-s", SIDES[0], "-t", SIDES[1]]
    return configuration(name, Namespace(data_bin="", more=more, **sizes))


def system_of(name: str, data_bin: Path, tokens: int) -> System:
    """Returns a model with a data-bin."""
    cfg = copy.deepcopy(configured(name))
    cfg.task.data, cfg.dataset.max_tokens = str(data_bin), tokens * sentences_of(name)
    return System(name, Namespace(seed=1, device="cpu"), cfg=cfg)


def targets_of(system: System, samples: List[dict]) -> int:
    """Returns how many sentences an epoch has as targets, each once."""
    numbers = [int(number) for sample in samples for number in sample["id"]]
    assert len(set(numbers)) == len(numbers), "a sentence is twice in an epoch"
    return len(numbers)


def too_long(system: System, split: str) -> int:
    """Returns how many sentences of a split are too long for the model, by their sizes in the data-bin."""
    prefix = Path(system.task.cfg.data) / f"{split}.{'-'.join(SIDES)}."
    sides = [MMapIndexedDataset(f"{prefix}{side}") for side in SIDES]  # their sizes are views that die with them
    longer = np.maximum(*(np.asarray(side.sizes) for side in sides))
    return int((longer[system.task.dataset(split).index.items] > LONGEST).sum())


def translate(system: System) -> List[int]:
    """Returns the numbers of the sentences of the test set that are translated, in the order of their batches."""
    from fairseq.dataclass.configs import GenerationConfig

    system.task.load_dataset("test")
    system.model.eval()
    generator = system.task.build_generator([system.model], GenerationConfig(beam=2, max_len_b=3))
    iterator = system.task.get_batch_iterator(
        system.task.dataset("test"), max_tokens=200, max_positions=(LONGEST, LONGEST), ignore_invalid_inputs=True
    )
    numbers = []
    for sample in iterator.next_epoch_itr(shuffle=False):
        if not sample:
            continue
        hypotheses = system.task.inference_step(generator, [system.model], sample)
        assert len(hypotheses) == len(sample["id"]) and all(one for one in hypotheses), "a translation is missing"
        numbers += [int(number) for number in sample["id"]]
    return numbers


def output_lines(output: Path, split: str) -> List[int]:
    """Returns the sentences of each document of the prepared text."""
    documents = (output / "text" / f"{split}.{SIDES[0]}").read_text(encoding="utf-8").split("\n\n")
    counts = [sum(line not in ("", "<p>") for line in document.split("\n")) for document in documents]
    return [count for count in counts if count]


def one(seed: str, folder: Path) -> Dict[str, Any]:
    """Makes a corpus of a seed, and takes it all the way; returns what came of it."""
    chance = random.Random(seed)
    name = chance.choice(MODELS)
    documents = corpus(chance)
    folder.mkdir(exist_ok=True)
    kept = [[pair for part in text for pair in part if shows(pair)] for text in documents]
    try:
        output = prepare(documents, folder, chance)
        return {"outcome": "whole", "model": name, **account(output, [one for one in kept if one], name, chance)}
    except InputError as error:
        return {"outcome": "refused", "detail": str(error)[:300]}
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return {"outcome": "fault", "detail": f"{type(error).__name__} in {Path(place.filename).name}: {error}"[:300]}


def report(found: List[Dict[str, Any]]) -> str:
    """Returns the page."""
    counts = Counter(line["outcome"] for line in found)
    whole = [line for line in found if line["outcome"] == "whole"]
    rows = [[name, sum(line["model"] == name for line in whole)] for name in MODELS]
    sentences, skipped = (sum(line[what] for line in whole) for what in ("sentences", "skipped"))
    refused = (line["detail"].removeprefix("docnmt prepare: error: ") for line in found if line["outcome"] == "refused")
    refusals = Counter(" ".join(re.sub(r"/\S+/|\d+", "…", text).split()[:7]) for text in refused)
    faults = [f"- {line['detail']} (seed {line['seed']})" for line in found if line["outcome"] == "fault"]
    parts = [
        "# Random corpora",
        f"`{command()}`  \n{machine()}",
        f"{len(found):,} corpora: {counts['whole']:,} prepared, trained on and translated with every sentence "
        f"accounted for ({sentences:,} sentences, {skipped:,} of them too long for the model, and counted as such); "
        f"{counts['refused']:,} refused in a line; "
        f"{counts['fault']:,} faults.",
        table(["model", "corpora"], rows),
        "\n".join(f"- refused {count:,} times: {text} …" for text, count in refusals.most_common(12)),
        "\n".join(faults),
    ]
    return "\n\n".join(part for part in parts if part)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=int, default=10_000, help="how many (default: 10,000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first, to see one again")
    return parser.parse_args()


def main() -> None:
    args, start = options(), time.monotonic()
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    found = []
    for number in tqdm(range(args.first, args.first + args.corpora), desc="corpora", mininterval=10):
        with tempfile.TemporaryDirectory() as folder:
            seed = f"{args.seed}-{number}"
            found.append({"seed": seed, **one(seed, Path(folder))})
            if found[-1]["outcome"] == "fault":
                tqdm.write(str(found[-1]))
    faults = [line for line in found if line["outcome"] == "fault"]
    counts = dict(Counter(line["outcome"] for line in found))
    publish("corpora", report(found), seconds=round(time.monotonic() - start), outcomes=counts, faults=faults)
    raise SystemExit(int(bool(faults)))


if __name__ == "__main__":
    main()
