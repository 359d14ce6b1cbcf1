"""Speed of translating documents beside stock fairseq, and beside models that read three sentences of context again.

    python -m benchmarks.speed.generation_speed DATA_BIN [--every 10] [--rounds 3] [--max-tokens 4096] [--width 256] ...

Five systems translate the test set with beam search, every 10th batch of each, by turns in one process; speed is that
of translated tokens (the context's, translated again, do not count), ratios are within a round, of which the median is
reported. Models have random weights. The reference is given as prefix (as by --prefix-size), so that every system
writes the same translations and every search ends where it would with a trained model.
Options that are not listed by --help go to all models, e.g. --share-all-embeddings.
Writes benchmarks/results/generation_speed.md and .json.
"""

import argparse
import statistics
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np
import torch
from fairseq import tasks, utils
from fairseq.data import LanguagePairDataset
from fairseq.dataclass.configs import GenerationConfig
from tqdm import tqdm

from benchmarks.lib.machine import begin, clock, command, machine, publish, table, threads
from benchmarks.lib.systems import add_model_options, configuration, first_linear
from docnmt_fairseq.data.index import DocumentIndex
from docnmt_fairseq.data.kept_index import read_index
from docnmt_fairseq.models.transformer.attention import SingleSourceAttention

CONTEXT, BREAK = 3, "<p>"  # of a concatenation model: sentences before, the symbol between sentences
SYSTEMS = {
    "stock": "task translation, model transformer",
    "sentence": "document_transformer, --context none",
    "conditional": "document_transformer, attention to the 4 most relevant sentences in the last 3 layers",
    "4-to-4": "the stock system on a window that moves by one sentence: three sentences of context and the sentence "
    "in, the translations of all four out, of which the last is kept",
    "4-to-1": "the same window in, only the translation of its last sentence out",
}
TARGETS = [("sentence", "stock", 0.9), ("conditional", "stock", 0.9)]
TARGETS += [(name, window, 3.0) for window in ("4-to-4", "4-to-1") for name in ("sentence", "conditional")]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model_options(parser)
    parser.add_argument("--every", type=int, default=10, help="translate one of so many batches (default: 10)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count (default: 3)")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--threads", type=int, help="of PyTorch (default: its own choice)")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    args, args.more = parser.parse_known_args()
    return args


class Translator:
    """A task with some documents of its test set, a model with random weights, and a search.

    Args:
        name: of ``SYSTEMS``.
        args: the benchmark's options.
    """

    def __init__(self, name: str, args: argparse.Namespace):
        cfg = configuration(name if name in ("sentence", "conditional") else "stock", args)
        torch.manual_seed(args.seed)
        self.task = tasks.setup_task(cfg.task)
        self.device = args.device
        self.model = self.task.build_model(cfg.model).eval().to(self.device)
        self.model.prepare_for_inference_(cfg)
        self.pad = self.task.target_dictionary.pad()
        self.task.load_dataset("test")
        self.dataset = self.task.dataset("test")
        window = name if name.startswith(str(CONTEXT + 1)) else None
        most = 1 if window is None else CONTEXT + 1
        longest = most * max(200, int(np.max(self.dataset.tgt.sizes)))  # no search ends before its reference does
        self.generator = self.task.build_generator([self.model], GenerationConfig(beam=args.beam, max_len_b=longest))
        if name not in ("sentence", "conditional"):
            sentences = index_of(self.task, self.dataset)
            if window is not None:
                self.dataset = windows(self.task, self.dataset, sentences, to_all=window == "4-to-4")
        order = self.dataset.ordered_indices()
        if name == "stock":  # leaves out the marks of documents
            order = order[np.isin(order, sentences.items)]
        batches = list(self.dataset.batch_by_size(order, max_tokens=args.max_tokens))
        self.batches = batches[args.every // 2 :: args.every]

    def samples(self) -> Iterator[Dict]:
        """Yields the batches."""
        for batch in self.batches:
            yield self.dataset.collater([self.dataset[int(number)] for number in batch])

    def translate(self) -> Tuple[float, int]:
        """Returns the seconds that the batches take, and how many tokens of translations they gave."""
        start, tokens = clock(), 0
        for sample in self.samples():
            sample = utils.move_to_cuda(sample) if self.device != "cpu" else sample
            target = sample["target"]
            hypotheses = self.task.inference_step(self.generator, [self.model], sample, prefix_tokens=target)
            for best, expected in zip(hypotheses, target):
                if not torch.equal(best[0]["tokens"], expected[expected.ne(self.pad)]):
                    raise RuntimeError("a search did not end where the reference does")
                tokens += len(self.translation(best[0]["tokens"]))
        return clock() - start, tokens

    def translation(self, tokens: torch.Tensor) -> torch.Tensor:
        """Returns the last sentence of a translated window."""
        breaks = tokens.eq(self.task.target_dictionary.index(BREAK)).nonzero()
        return tokens[int(breaks[-1]) + 1 :] if len(breaks) else tokens


def index_of(task: object, dataset: object) -> DocumentIndex:
    """Returns which lines of the stock task's test set are sentences, and where documents begin."""
    mark = task.source_dictionary.index(BREAK)
    return read_index(dataset.src, dataset.tgt, (mark, mark), "test", "document")


def windows(task: object, dataset: object, index: DocumentIndex, to_all: bool) -> LanguagePairDataset:
    """Returns every sentence behind the up to three before it, a break between them, and its translation.

    Args:
        task: the stock task.
        dataset: its test set.
        index: of the test set.
        to_all: the target is a window, too.
    """
    sources, targets = [], []
    for lines in np.split(index.items, index.documents[1:-1]):
        for place, line in enumerate(lines):
            window = lines[max(0, place - CONTEXT) : place + 1]
            sources.append(joined([dataset.src[int(i)] for i in window], task.source_dictionary))
            targets.append(
                joined([dataset.tgt[int(i)] for i in (window if to_all else [line])], task.target_dictionary)
            )
    lengths = [np.array([len(tokens) for tokens in side]) for side in (sources, targets)]
    pair = (sources, lengths[0], task.source_dictionary, targets, lengths[1], task.target_dictionary)
    return LanguagePairDataset(*pair, left_pad_source=task.cfg.left_pad_source, shuffle=False)


def joined(sentences: List[torch.Tensor], dictionary: object) -> torch.Tensor:
    """Returns sentences as one, a break in place of every end of sentence but the last."""
    mark = torch.tensor([dictionary.index(BREAK)])
    parts = [torch.cat([tokens[:-1], mark.to(tokens)]) for tokens in sentences[:-1]]
    return torch.cat([*parts, sentences[-1]])


class Counter:
    """Counts, by hooks, what encoder and decoder-encoder attention of a model compute in a search.

    ``positions`` are those of the encoder's first feed-forward; ``pairs`` of a hypothesis's word and a source word.
    """

    def __init__(self, translator: Translator):
        self.positions = self.pairs = 0
        layer = translator.model.encoder.layers[0]
        attention = translator.model.decoder.layers[0].encoder_attn
        first_linear(layer).register_forward_pre_hook(self._encoder)
        if isinstance(attention, SingleSourceAttention):
            attention.attend_hypotheses = self._counting(attention.attend_hypotheses)
        else:
            attention.register_forward_pre_hook(self._attention, with_kwargs=True)

    def _encoder(self, _: object, inputs: tuple) -> None:
        self.positions += inputs[0].numel() // inputs[0].size(-1)

    def _attention(self, _: object, _inputs: tuple, given: dict) -> None:
        self.pairs += given["query"].size(1) * given["key"].size(0)

    def _counting(self, attend: Callable[..., Any]) -> Callable[..., Any]:
        def counted(x: torch.Tensor, parts: List[torch.Tensor], *others: object) -> Any:
            self.pairs += x.size(0) * x.size(1) * parts[0].size(2)  # [S, hypotheses, d], [S, H, source words, d/H]
            return attend(x, parts, *others)

        return counted


def real(translator: Translator, beam: int) -> Tuple[int, int]:
    """Returns the real positions in the encoder and pairs in decoder-encoder attention of one round."""
    words = pairs = 0
    for sample in translator.samples():
        source = sample["net_input"]["src_tokens"].ne(translator.pad).sum(1)
        target = sample["target"].ne(translator.pad).sum(1)
        words += int(source.sum())
        pairs += int((source * target).sum()) * beam
    return words, pairs


def measure(args: argparse.Namespace) -> Dict[str, dict]:
    """Returns, by system, tokens a second in every round and facts about it."""
    translators = {name: Translator(name, args) for name in args.systems}
    counters = {name: Counter(translator) for name, translator in translators.items()}
    result = {name: {"batches": len(translator.batches), "rounds": []} for name, translator in translators.items()}
    for _ in tqdm(range(args.rounds), desc="rounds"):
        for name, translator in translators.items():
            seconds, result[name]["tokens"] = translator.translate()
            result[name]["rounds"].append(result[name]["tokens"] / seconds)
    for name, translator in translators.items():
        words, pairs = (args.rounds * number for number in real(translator, args.beam))
        shares = {"encoder": words / counters[name].positions, "attention": pairs / counters[name].pairs}
        result[name]["real_share"] = shares
    return result


def ratio(result: Dict[str, dict], name: str, other: str) -> Tuple[float, float, float]:
    """Returns how many times as fast ``name`` is as ``other``: median, least, most."""
    ratios = [a / b for a, b in zip(result[name]["rounds"], result[other]["rounds"])]
    return statistics.median(ratios), min(ratios), max(ratios)


def report(args: argparse.Namespace, result: Dict[str, dict]) -> str:
    rows, lines = [], []
    for name, one in result.items():
        speed = statistics.median(one["rounds"])
        ratios = []
        for other in ("stock", "4-to-4", "4-to-1"):
            if other in result:
                ratios.append("{:.2f} ({:.2f} to {:.2f})".format(*ratio(result, name, other)))
        shares = [f"{share:.3f}" for share in one["real_share"].values()]
        rows.append([name, f"{speed:,.0f}", *ratios, f"{one['tokens']:,}", *shares])
    others = [f"÷ {other}" for other in ("stock", "4-to-4", "4-to-1") if other in result]
    header = ["system", "tokens/s", *others, "tokens", "real in encoder", "real in decoder-encoder attention"]
    for name, other, least in TARGETS:
        if name in result and other in result:
            value = ratio(result, name, other)[0]
            lines.append(f"- {name} ≥ {least} × {other}: {value:.2f}, {'met' if value >= least else 'missed'}")
    sizes = f"{args.layers} + {args.layers} layers, width {args.width}, feed-forward {args.ffn}, {args.heads} heads"
    return "\n\n".join(
        [
            "# Speed of translating documents",
            f"`{command()}`  \n{machine()}; {threads()}",
            "\n".join(f"- {name}: {SYSTEMS[name]}" for name in result),
            f"{sizes}, random weights; float32, beam {args.beam}, --max-tokens {args.max_tokens}. One of "
            f"{args.every} batches of the test set; {args.rounds} rounds by turns, medians (least to most). Tokens are "
            "those of translations; what a window translates again does not count. The reference is given as prefix: "
            "every system writes the same translations, every search ends where the reference does. Collating is part "
            "of the time. The stock systems sort the test set by length; documents stay together.",
            table(header, rows),
            "\n".join(["Targets:", *lines]),
        ]
    )


def main() -> None:
    args = options()
    begin(args.threads)
    result = measure(args)
    publish("generation_speed", report(args, result), systems=result)


if __name__ == "__main__":
    main()
