"""Speed of translation on one CPU thread: search engine of docnmt translate, fairseq-generate's search, CTranslate2.

    python -m benchmarks.speed.translation_engines [--rounds 3] [--sentences 320] [--systems stock sentence ...] ...

All translate the same documents of artificial words with random weights; the stock model, CTranslate2 and
``sentence`` have the same ones. Every translation has --length tokens. With target-side context, one sentence per
document is decoded at a time: ``han-both, many documents`` fills the search with more documents.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils, options, tasks, utils
from fairseq.dataclass.configs import GenerationConfig
from fairseq_cli import preprocess

from benchmarks.lib.measuring import by_turns, clock, run_benchmark
from benchmarks.lib.reporting import table
from benchmarks.lib.systems import STOCK, configuration, shown_sizes
from docnmt_fairseq.search.engine import SearchEngine
from docnmt_fairseq.search.options import SearchOptions

TITLE = "Translation engines on a CPU"
MANY = 64  # documents that fill a search with beam 4
SYSTEMS = {
    STOCK: "fairseq's search, task translation, model transformer",
    "ctranslate2 float32": "CTranslate2, stock model",
    "ctranslate2 int8": "CTranslate2, stock model in int8",
    "sentence": "search of docnmt translate, stock model",
    "sentence bf16": "the same, matrix products in bfloat16",
    "sentence int8": "the same, matrix products in int8",
    "conditional": "attention to the 4 most relevant sentences in the upper half of the encoder",
    "memory": "memory networks in the encoder",
    "han-both": "hierarchical attention in encoder and decoder, sees previous translations",
    "han-both, many documents": f"the same, at least {MANY} documents",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds options."""
    parser.set_defaults(threads=1, dropout=0.1)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=320)
    parser.add_argument("--document", type=int, default=20, help="sentences per document (default: 20)")
    parser.add_argument("--words", type=int, default=25, help="source tokens per sentence on average (default: 25)")
    parser.add_argument("--length", type=int, default=25, help="target tokens per sentence (default: 25)")
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--max-tokens", type=int, default=4096, help="source tokens per batch (default: 4096)")
    parser.add_argument("--batch", type=int, default=64, help="sentences per batch of CTranslate2 (default: 64)")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--ffn", type=int, default=2048)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)


def write_data(folder: Path, args: argparse.Namespace) -> list[list[str]]:
    """Writes a data-bin with a joint vocabulary whose test set is the sentences; returns the sentences."""
    folder.mkdir(exist_ok=True)
    generator = np.random.default_rng(args.seed)
    words = [f"w{number}" for number in range(args.vocabulary - 4)]
    (folder / "dict.txt").write_text("".join(f"{word} 1\n" for word in words))
    low, high = max(1, args.words * 3 // 5), max(2, args.words * 7 // 5)
    lengths = generator.integers(low, high + 1, size=args.sentences)
    sentences = [[words[i] for i in generator.integers(len(words), size=length)] for length in lengths]
    lines = []
    for number, sentence in enumerate(sentences):
        lines += ([""] if number and number % args.document == 0 else []) + [" ".join(sentence)]
    for side in ("src", "tgt"):
        (folder / f"test.{side}").write_text("\n".join(lines) + "\n")
    words = ["-s", "src", "-t", "tgt", "--testpref", str(folder / "test"), "--destdir", str(folder / "bin")]
    words += ["--srcdict", str(folder / "dict.txt"), "--joined-dictionary", "--padding-factor", "1"]
    preprocess.main(options.get_preprocessing_parser().parse_args(words))
    return sentences


class Fairseq:
    """Stock fairseq: task, model and search."""

    name = STOCK

    def __init__(self, args: argparse.Namespace):
        self.args, self.cfg = args, configuration(self.name, args)
        torch.manual_seed(args.seed)
        self.task = tasks.setup_task(self.cfg.task)
        self.model = self.task.build_model(self.cfg.model).eval()
        self.task.load_dataset("test")
        self.dataset = self.task.dataset("test")
        self.model.prepare_for_inference_(self.cfg)
        search = GenerationConfig(beam=args.beam, min_len=args.length, max_len_b=args.length)
        self.generator = self.task.build_generator([self.model], search)

    def samples(self) -> Iterator[dict[str, Any]]:
        """Yields the batches, without document boundaries."""
        order = [i for i in self.dataset.ordered_indices() if self.dataset.sizes[i].max() > 1]
        for batch in self.dataset.batch_by_size(np.array(order), max_tokens=self.args.max_tokens):
            yield self.dataset.collater([self.dataset[int(number)] for number in batch])

    def tokens(self) -> dict[int, list[int]]:
        """Returns the best translation of every sentence by number."""
        found = {}
        for sample in self.samples():
            hypotheses = self.task.inference_step(self.generator, [self.model], sample)
            found.update(zip(sample["id"].tolist(), (one[0]["tokens"].tolist() for one in hypotheses)))
        return found

    def translate(self) -> tuple[float, int, list[list[str]]]:
        """Returns seconds, scored tokens and translations."""
        start = clock()
        found = self.tokens()
        seconds, ordered = clock() - start, [found[number] for number in sorted(found)]
        words = [[self.task.target_dictionary[token] for token in one[:-1]] for one in ordered]
        return seconds, sum(map(len, ordered)), words


class Ours(Fairseq):
    """Models and search engine of this package.

    Args:
        name: key of ``SYSTEMS``.
        args: options of the benchmark.
        stock: stock model, used by the sentence-level systems.
    """

    def __init__(self, name: str, args: argparse.Namespace, stock: Fairseq):
        self.name, _, precision = name.partition(",")[0].partition(" ")
        super().__init__(args)
        self.model = stock.model if self.name == "sentence" else self.model
        search = SearchOptions(beam=args.beam, min_len=args.length, max_len_b=args.length)
        dictionary = self.task.target_dictionary
        self.engine = SearchEngine([self.model], dictionary, search, precision=precision or "float32")

    def samples(self) -> Iterator[dict[str, Any]]:
        """Yields the batches."""
        positions = utils.resolve_max_positions(self.task.max_positions(), self.model.max_positions())
        options_ = {"max_tokens": self.args.max_tokens, "max_positions": positions}
        for batch in self.task.get_batch_iterator(self.dataset, **options_).frozen_batches:
            yield self.dataset.collater([self.dataset[int(number)] for number in batch])

    def tokens(self) -> dict[int, list[int]]:
        """Returns the best translation of every sentence by number."""
        return {sentence.number: one[0]["tokens"].tolist() for sentence, one in self.engine.run(self.samples())}


class CTranslate2:
    """CTranslate2 with the stock model, by its own converter for fairseq.

    Args:
        kind: compute type.
        stock: stock system.
        sentences: source sentences.
        folder: folder for the converted model.
    """

    def __init__(self, kind: str, stock: Fairseq, sentences: list[list[str]], folder: Path):
        import ctranslate2

        if not (folder / "ctranslate2").exists():
            state = {"cfg": stock.cfg, "args": None, "model": stock.model.state_dict()}
            checkpoint_utils.torch_persistent_save(state, str(folder / "model.pt"))
            for side in ("src", "tgt"):
                shutil.copy(folder / "dict.txt", folder / f"dict.{side}.txt")
            converter = ctranslate2.converters.FairseqConverter(str(folder / "model.pt"), str(folder), "src", "tgt")
            converter.convert(str(folder / "ctranslate2"))
        model = str(folder / "ctranslate2")
        self.translator = ctranslate2.Translator(model, compute_type=kind, inter_threads=1, intra_threads=1)
        self.args, self.sentences = stock.args, sentences

    def translate(self) -> tuple[float, int, list[list[str]]]:
        """Returns seconds, scored tokens and translations."""
        start = clock()
        limits = {"min_decoding_length": self.args.length, "max_decoding_length": self.args.length}
        search = {"beam_size": self.args.beam, "max_batch_size": self.args.batch, **limits}
        found = [one.hypotheses[0] for one in self.translator.translate_batch(self.sentences, **search)]
        return clock() - start, sum(map(len, found)), found


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Returns seconds of every round, tokens, and the share of translations that equal those of the stock system."""
    args.more = ["--share-all-embeddings", *args.more]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sentences = write_data(folder, args)
        args.data_bin = str(folder / "bin")
        stock = Fairseq(args)
        systems: dict[str, Any] = {}
        for name in args.systems:
            if name == STOCK:
                systems[name] = stock
            elif name.startswith("ctranslate2"):
                systems[name] = CTranslate2(name.split()[1], stock, sentences, folder)
            elif name.endswith("many documents"):
                more = argparse.Namespace(**{**vars(args), "sentences": max(args.sentences, MANY * args.document)})
                more.data_bin = str(folder / "many" / "bin")
                write_data(folder / "many", more)
                systems[name] = Ours(name, more, stock)
            else:
                systems[name] = Ours(name, args, stock)
        rounds = by_turns({name: system.translate for name, system in systems.items()}, args.rounds)
    same = {}
    for name, results in rounds.items():
        if STOCK in rounds and name.startswith((STOCK, "ctranslate2", "sentence")):
            same[name] = float(np.mean([one == first for one, first in zip(results[0][2], rounds[STOCK][0][2])]))
    seconds = {name: [result[0] for result in results] for name, results in rounds.items()}
    return {"seconds": seconds, "tokens": {name: results[0][1] for name, results in rounds.items()}, "same": same}


def report(args: argparse.Namespace, figures: dict[str, Any]) -> list[str]:
    """Returns the paragraphs of the report."""
    seconds, tokens = figures["seconds"], figures["tokens"]

    def speedup(name: str, other: str) -> float:
        rounds = zip(seconds[name], seconds[other])
        return statistics.median(tokens[name] / tokens[other] * slow / fast for fast, slow in rounds)

    others = [name for name in (STOCK, "ctranslate2 float32", "ctranslate2 int8") if name in seconds]
    rows = []
    for name, rounds in seconds.items():
        median = statistics.median(rounds)
        ratios = [f"{speedup(name, other):.2f}" for other in others]
        same = f"{figures['same'][name]:.1%}" if name in figures["same"] else ""
        rows.append([name, f"{median:.1f}", f"{tokens[name] / median:,.0f}", *ratios, same])
    return [
        table(["system", "seconds", "tokens/s", *(f"÷ {other}" for other in others), "same as stock"], rows),
        "\n".join(f"- {name}: {SYSTEMS[name]}" for name in seconds),
        f"{shown_sizes(args)}, vocabulary {args.vocabulary:,}. {args.sentences} sentences in documents of "
        f"{args.document}, beam {args.beam}, {args.length} target tokens each; batches of CTranslate2: {args.batch} "
        "sentences. Tokens per second: tokens that were scored; CTranslate2 stops before the end of sentence.",
    ]


if __name__ == "__main__":
    sys.exit(run_benchmark("benchmarks.speed.translation_engines"))
