"""Speed of translating on one thread of a CPU, beside stock fairseq-generate's search and CTranslate2.

    python -m benchmarks.speed.translation_engines [--ctranslate2-python PATH] [--rounds 3] [--sentences 320] ...

All translate the same documents of a made-up vocabulary, with models of random weights: those of stock fairseq, of
CTranslate2 and of this package's sentence-level rows are the same. With target-side context a document has one sentence
under way, so that few documents fill few of the search's slots: its second row has more documents, as long as the
others. Every translation gets as many tokens as --length says, so that all engines write the same number; speed is that
of tokens whose probability was computed. Systems go by turns in every round; times are the processor's, ratios are
within a round, of which the median is reported. One more round is profiled.
CTranslate2 is of another environment, whose Python is named; without one its rows are left out.
Writes benchmarks/results/translation_engines.md and .json.
"""

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List

import numpy as np
import torch
from fairseq import tasks, utils
from fairseq.dataclass.configs import GenerationConfig
from tqdm import tqdm

from benchmarks.lib.ctranslate2_engine import CTranslate2
from benchmarks.lib.kinds import kinds
from benchmarks.lib.machine import begin, clock, machine, publish, table, threads
from benchmarks.lib.preprocess import fairseq_preprocess
from benchmarks.lib.systems import configuration
from docnmt_fairseq.search.build_engine import search_engine
from docnmt_fairseq.search.options import SearchOptions

MANY = 64  # documents that fill the slots of a search for four hypotheses
SYSTEMS = {
    "stock": "fairseq's search, task translation, model transformer",
    "ctranslate2 float32": "CTranslate2, the stock model",
    "ctranslate2 int8": "CTranslate2, the stock model in int8",
    "sentence": "this package's search given the stock model, as docnmt translate does with its checkpoint",
    "sentence bf16": "the same, matrix products in bfloat16",
    "sentence int8": "the same, matrix products in int8",
    "conditional": "document_transformer, attention to the 4 most relevant sentences in the upper half of the encoder",
    "memory": "document_transformer with memory networks in the encoder",
    "han-both": "document_transformer with hierarchical attention in the encoder and the decoder, which also sees the "
    "translations before",
    "han-both, many documents": f"the same, at least {MANY} documents",
}
SAME_WEIGHTS = [name for name in SYSTEMS if name.startswith(("stock", "ctranslate2", "sentence"))]
TARGETS = [
    ("sentence int8", "ctranslate2 int8", 0.8),
    ("sentence", "ctranslate2 float32", 1.0),
    ("sentence", "stock", 2.4),
]
TARGETS += [(name, "sentence", 0.85) for name in ("conditional", "memory", "han-both", "han-both, many documents")]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ctranslate2-python", metavar="PATH", help="of an environment that has CTranslate2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=320)
    parser.add_argument("--document", type=int, default=20, help="sentences of a document (default: 20)")
    parser.add_argument("--words", type=int, default=25, help="source tokens of a sentence, on average (default: 25)")
    parser.add_argument("--length", type=int, default=25, help="target tokens of every sentence (default: 25)")
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--max-tokens", type=int, default=4096, help="source tokens of a batch (default: 4096)")
    parser.add_argument("--batch", type=int, default=64, help="sentences of a batch of CTranslate2 (default: 64)")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--ffn", type=int, default=2048)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    args = parser.parse_args()
    args.dropout, args.more = 0.1, ["--share-all-embeddings"]
    return args


def write_data(folder: Path, args: argparse.Namespace) -> List[List[str]]:
    """Writes a data-bin whose test set is the sentences, a vocabulary on both sides; returns the sentences."""
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
    arguments = ["-s", "src", "-t", "tgt", "--testpref", str(folder / "test"), "--destdir", str(folder / "bin")]
    arguments += ["--srcdict", str(folder / "dict.txt"), "--joined-dictionary", "--padding-factor", "1"]
    fairseq_preprocess(arguments)
    return sentences


class Fairseq:
    """Stock fairseq: its task, model and search.

    Args:
        args: the benchmark's options, with the data-bin.
    """

    name = "stock"

    def __init__(self, args: argparse.Namespace):
        self.args = args
        cfg = configuration(self.name, args)
        torch.manual_seed(args.seed)
        self.task = tasks.setup_task(cfg.task)
        self.model = self.task.build_model(cfg.model).eval()
        self.task.load_dataset("test")
        self.dataset = self.task.dataset("test")
        self.model.prepare_for_inference_(cfg)
        search = GenerationConfig(beam=args.beam, min_len=args.length, max_len_b=args.length)
        self.generator = self.task.build_generator([self.model], search)

    def samples(self) -> Iterator[Dict[str, Any]]:
        """Yields the batches, without what is no sentence."""
        order = [i for i in self.dataset.ordered_indices() if self.dataset.sizes[i].max() > 1]
        for batch in self.dataset.batch_by_size(np.array(order), max_tokens=self.args.max_tokens):
            yield self.dataset.collater([self.dataset[int(number)] for number in batch])

    def translate(self) -> List[List[int]]:
        """Returns the best translation of every sentence."""
        found = {}
        for sample in self.samples():
            hypotheses = self.task.inference_step(self.generator, [self.model], sample)
            found.update(zip(sample["id"].tolist(), (one[0]["tokens"].tolist() for one in hypotheses)))
        return [found[number] for number in sorted(found)]

    def words(self, translations: List[List[int]]) -> List[List[str]]:
        """Returns translations in words, without the end of sentence."""
        return [[self.task.target_dictionary[token] for token in one[:-1]] for one in translations]


class Own(Fairseq):
    """This package's models and search.

    Args:
        name: of ``SYSTEMS``.
        args: see :class:`Fairseq`.
        stock: the stock model, which sentence-level rows translate with.
    """

    def __init__(self, name: str, args: argparse.Namespace, stock: Fairseq):
        self.name, _, precision = name.partition(",")[0].partition(" ")
        super().__init__(args)
        if self.name == "sentence":
            self.model = stock.model
        options = SearchOptions(beam=args.beam, min_len=args.length, max_len_b=args.length)
        self.engine = search_engine(
            [self.model], self.task.target_dictionary, options, precision=precision or "float32"
        )

    def samples(self) -> Iterator[Dict[str, Any]]:
        """Yields the batches."""
        positions = utils.resolve_max_positions(self.task.max_positions(), self.model.max_positions())
        batches = self.task.get_batch_iterator(
            self.dataset, max_tokens=self.args.max_tokens, max_positions=positions
        ).frozen_batches
        for batch in batches:
            yield self.dataset.collater([self.dataset[int(number)] for number in batch])

    def translate(self) -> List[List[int]]:
        """Returns the best translation of every sentence."""
        found = {sentence.number: one[0]["tokens"].tolist() for sentence, one in self.engine.run(self.samples())}
        return [found[number] for number in sorted(found)]


def measure(args: argparse.Namespace) -> Dict[str, Any]:
    """Returns the seconds of every system in every round, and which share of translations is the stock system's."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sentences = write_data(folder, args)
        args.data_bin = str(folder / "bin")
        stock = Fairseq(args)
        ours = {}
        for name in args.systems:
            if name.endswith("many documents"):
                more = argparse.Namespace(**{**vars(args), "sentences": max(args.sentences, MANY * args.document)})
                more.data_bin = str(folder / "many" / "bin")
                write_data(folder / "many", more)
                ours[name] = Own(name, more, stock)
            elif name != "stock" and not name.startswith("ctranslate2"):
                ours[name] = Own(name, args, stock)
        other = None
        if args.ctranslate2_python and any(name.startswith("ctranslate2") for name in args.systems):
            weights = {name: weight.numpy() for name, weight in stock.model.state_dict().items()}
            sizes = {name: getattr(args, name) for name in ("layers", "heads", "beam", "length", "batch")}
            settings = {**sizes, "vocabulary": stock.task.source_dictionary.symbols}
            other = CTranslate2(args.ctranslate2_python, folder, sentences, weights, settings)
        systems = [name for name in args.systems if other is not None or not name.startswith("ctranslate2")]
        seconds: Dict[str, List[float]] = {name: [] for name in systems}
        translations: Dict[str, List[List[str]]] = {}
        for number in tqdm(range(args.rounds + 1), desc="rounds", disable=None):
            for system in systems[number % len(systems) :] + systems[: number % len(systems)]:
                if other is not None and system.startswith("ctranslate2"):
                    answer = other.translate(system.split()[1])
                    took, translations[system] = answer["seconds"], answer["translations"]
                else:
                    start, translator = clock(), ours.get(system, stock)
                    found = translator.translate()
                    took, translations[system] = clock() - start, translator.words(found)
                if number:  # the first round warms up
                    seconds[system].append(took)
        if other is not None:
            other.close()
        profiled = [name for name in systems if other is None or not name.startswith("ctranslate2")]
        parts = {name: kinds(translated_tokens, ours.get(name, stock), outside=True) for name in profiled}
    # Ends of sentences are scored as any token, but for CTranslate2's, which stops before them at the limit.
    tokens = {
        name: sum(len(one) + (not name.startswith("ctranslate2")) for one in found)
        for name, found in translations.items()
    }
    same = {}
    for name, found in translations.items():
        if "stock" in translations and name in SAME_WEIGHTS:
            same[name] = float(np.mean([one == first for one, first in zip(found, translations["stock"])]))
    version = None if other is None else other.version
    return {"seconds": seconds, "tokens": tokens, "same": same, "ctranslate2": version, "kinds": parts}


def translated_tokens(translator: Fairseq) -> int:
    """Translates, and returns how many tokens."""
    return sum(map(len, translator.translate()))


def report(args: argparse.Namespace, found: Dict[str, Any]) -> str:
    """Returns the page."""
    seconds = found["seconds"]

    def ratio(name: str, other: str) -> float:
        written = found["tokens"][name] / found["tokens"][other]
        return statistics.median(written * b / a for a, b in zip(seconds[name], seconds[other]))

    rows = []
    for name, rounds in seconds.items():
        others = ("stock", "ctranslate2 float32", "ctranslate2 int8")
        of_others = [f"{ratio(name, other):.2f}" if other in seconds else "" for other in others]
        speed = found["tokens"][name] / statistics.median(rounds)
        same = f"{found['same'][name]:.1%}" if name in found["same"] else ""
        rows.append([name, f"{statistics.median(rounds):.1f}", f"{speed:,.0f}", *of_others, same])
    header = ["system", "seconds", "tokens/s", "÷ stock", "÷ CTranslate2 float32", "÷ its int8", "same as stock"]
    lines = ["# Translation engines on a CPU", "", table(header, rows), ""]
    lines += [f"- {name}: {SYSTEMS[name]}" for name in seconds]
    for name, other, least in TARGETS:
        if name in seconds and other in seconds:
            value = ratio(name, other)
            lines.append(f"- {name} ÷ {other}: {value:.2f}, wanted {least}: {'met' if value >= least else 'missed'}")
    if {"stock", "sentence"} <= found["kinds"].keys():
        all_of_stock, products = sum(found["kinds"]["stock"].values()), found["kinds"]["sentence"]["matrix products"]
        lines.append(
            f"- sentence ÷ stock would be {all_of_stock / products:.2f} if sentence did nothing but matrix products, "
            f"{products:.2f} of the {all_of_stock:.2f} ms a token that stock takes"
        )
    if found["ctranslate2"] is None:
        lines.append("- CTranslate2: left out, no environment with it was given (`--ctranslate2-python`)")
    else:
        lines.append(f"- CTranslate2 {found['ctranslate2']}, batches of {args.batch} sentences by length")
    lines += ["", "Where the time goes: milliseconds a target token, one more round under torch.profiler", ""]
    of_kinds = [[name, *(f"{value:.2f}" for value in parts.values())] for name, parts in found["kinds"].items()]
    lines.append(table(["system", *next(iter(found["kinds"].values()))], of_kinds))
    size = f"{args.layers}+{args.layers} layers of width {args.width}, vocabulary {args.vocabulary:,}"
    work = f"{args.sentences} sentences in documents of {args.document}, beam {args.beam}"
    work += f", {args.length} target tokens each and an end of sentence"
    lines += ["", f"{work}; {size}; {threads()}. {machine()}."]
    return "\n".join(lines)


def main() -> None:
    args = options()
    begin(args.threads)
    found = measure(args)
    publish("translation_engines", report(args, found), **found)


if __name__ == "__main__":
    main()
