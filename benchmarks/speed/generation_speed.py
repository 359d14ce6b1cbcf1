"""Speed of fairseq-generate on documents, compared with stock fairseq and with concatenation models.

    python -m benchmarks.speed.generation_speed DATA_BIN [--every 10] [--rounds 3] [--max-tokens 4096] [--width 256] ...

All systems translate the test set by turns in one process, with random weights. The reference is the prefix
(--prefix-size), so that all write the same translations and every search ends with the reference. Only tokens of the
translation count, not context that is translated again. A step computes the next token of all hypotheses in the
decoder. Options that --help does not list are passed to all models.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator

import numpy as np
import torch
from fairseq import tasks, utils
from fairseq.data import LanguagePairDataset
from fairseq.dataclass.configs import GenerationConfig

from benchmarks.lib.measuring import by_turns, clock, ratio, run_benchmark, shown_ratio
from benchmarks.lib.reporting import table
from benchmarks.lib.systems import STOCK, add_model_options, configuration, shown_sizes
from benchmarks.lib.systems import SYSTEMS as MODELS
from docnmt_fairseq.data.index import DocumentIndex
from docnmt_fairseq.data.loading import read_index

TITLE = "Speed of translating documents"
CONTEXT, BREAK = 3, "<p>"  # concatenation models: previous sentences, separator
WINDOWS = ("4-to-4", "4-to-1")
FAIRSEQ = ", --search fairseq"  # instead of the engine
SYSTEMS = {
    STOCK: "task translation, model transformer",
    "sentence": "document_transformer, --context none",
    f"sentence{FAIRSEQ}": "the same with fairseq's search",
    "conditional": "document_transformer, attention to the 4 most relevant sentences in the last 3 layers",
    f"conditional{FAIRSEQ}": "the same with fairseq's search",
    "4-to-4": "stock system on a sliding window of four sentences; translates all four, the last one is kept",
    "4-to-1": "the same window; translates the last sentence only",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds options."""
    add_model_options(parser)
    parser.add_argument("--every", type=int, default=10, help="translate every N-th batch (default: 10)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))


class Translator:
    """Task with a part of its test set, model with random weights, and search.

    Args:
        name: key of ``SYSTEMS``.
        args: options of the benchmark.
    """

    def __init__(self, name: str, args: argparse.Namespace):
        model, fairseq_search, _ = name.partition(FAIRSEQ)
        own = model in MODELS and model != STOCK
        more = [*args.more, "--search", "fairseq"] if fairseq_search else args.more
        cfg = configuration(model if own else STOCK, argparse.Namespace(**{**vars(args), "more": more}))
        torch.manual_seed(args.seed)
        self.task, self.device = tasks.setup_task(cfg.task), args.device
        self.model = self.task.build_model(cfg.model).eval().to(self.device)
        self.model.prepare_for_inference_(cfg)
        self.steps: list[int] = []  # sentences of each
        self.model.decoder.output_projection.register_forward_hook(
            lambda module, inputs, logits: self.steps.append(logits[..., 0].numel() // args.beam)
        )
        self.pad = self.task.target_dictionary.pad()
        self.task.load_dataset("test")
        self.dataset = self.task.dataset("test")
        sentences = CONTEXT + 1 if name in WINDOWS else 1
        longest = sentences * max(200, int(np.max(self.dataset.tgt.sizes)))  # no search ends before its reference
        self.generator = self.task.build_generator([self.model], GenerationConfig(beam=args.beam, max_len_b=longest))
        order = None
        if not own:
            mark = self.task.source_dictionary.index(BREAK)
            index = read_index(self.dataset.src, self.dataset.tgt, (mark, mark), "test", "document")
            if name in WINDOWS:
                self.dataset = windows(self.task, self.dataset, index, all_targets=name == "4-to-4")
            else:  # without document boundaries
                order = self.dataset.ordered_indices()
                order = order[np.isin(order, index.items)]
        order = self.dataset.ordered_indices() if order is None else order
        batches = list(self.dataset.batch_by_size(order, max_tokens=args.max_tokens))
        self.batches = batches[args.every // 2 :: args.every]

    def samples(self) -> Iterator[dict]:
        """Yields the batches."""
        for batch in self.batches:
            yield self.dataset.collater([self.dataset[int(number)] for number in batch])

    def translate(self) -> tuple[float, int]:
        """Returns seconds and number of translated tokens."""
        start, tokens = clock(), 0
        self.steps.clear()
        for sample in self.samples():
            sample = utils.move_to_cuda(sample) if self.device != "cpu" else sample
            reference = sample["target"]
            hypotheses = self.task.inference_step(self.generator, [self.model], sample, prefix_tokens=reference)
            for best, expected in zip(hypotheses, reference):
                if not torch.equal(best[0]["tokens"].cpu(), expected[expected.ne(self.pad)].cpu()):
                    raise RuntimeError("a search did not end with the reference")
                tokens += len(self.last_sentence(best[0]["tokens"]))
        return clock() - start, tokens

    def last_sentence(self, tokens: torch.Tensor) -> torch.Tensor:
        """Returns the last sentence of a translated window."""
        breaks = tokens.eq(self.task.target_dictionary.index(BREAK)).nonzero()
        return tokens[int(breaks[-1]) + 1 :] if len(breaks) else tokens


def windows(task: object, dataset: object, index: DocumentIndex, all_targets: bool) -> LanguagePairDataset:
    """Returns a data set of windows: each sentence with up to three previous ones, separated by breaks.

    Args:
        task: stock task.
        dataset: its test set.
        index: document index of the test set.
        all_targets: the target is the whole window, otherwise its last sentence.
    """
    sources, targets = [], []
    for lines in np.split(index.items, index.documents[1:-1]):
        for place, line in enumerate(lines):
            window = lines[max(0, place - CONTEXT) : place + 1]
            sources.append(joined([dataset.src[int(i)] for i in window], task.source_dictionary))
            chosen = window if all_targets else [line]
            targets.append(joined([dataset.tgt[int(i)] for i in chosen], task.target_dictionary))
    lengths = [np.array([len(tokens) for tokens in side]) for side in (sources, targets)]
    pair = (sources, lengths[0], task.source_dictionary, targets, lengths[1], task.target_dictionary)
    return LanguagePairDataset(*pair, left_pad_source=task.cfg.left_pad_source, shuffle=False)


def joined(sentences: list[torch.Tensor], dictionary: object) -> torch.Tensor:
    """Returns sentences as one, with a break in place of each end of sentence but the last."""
    mark = torch.tensor([dictionary.index(BREAK)])
    parts = [torch.cat([tokens[:-1], mark.to(tokens)]) for tokens in sentences[:-1]]
    return torch.cat([*parts, sentences[-1]])


def measure(args: argparse.Namespace) -> dict:
    """Returns tokens per second in every round."""
    translators = {name: Translator(name, args) for name in args.systems}
    rounds = by_turns({name: one.translate for name, one in translators.items()}, args.rounds, warmup=0)
    systems = {
        name: {
            "batches": len(translators[name].batches),
            "tokens": results[0][1],
            "steps": len(translators[name].steps),
            "sentences_per_step": statistics.mean(translators[name].steps),
            "rounds": [tokens / seconds for seconds, tokens in results],
        }
        for name, results in rounds.items()
    }
    return {"systems": systems}


def report(args: argparse.Namespace, figures: dict) -> list[str]:
    """Returns the paragraphs of the report."""
    systems = figures["systems"]
    rounds = {name: one["rounds"] for name, one in systems.items()}
    others = [name for name in (STOCK, *WINDOWS) if name in systems]
    rows = [
        [
            name,
            f"{statistics.median(one['rounds']):,.0f}",
            *(shown_ratio(ratio(rounds, name, other)) for other in others),
            f"{one['tokens']:,}",
            f"{one['steps']:,}",
            f"{one['sentences_per_step']:.0f}",
        ]
        for name, one in systems.items()
    ]
    return [
        "\n".join(f"- {name}: {SYSTEMS[name]}" for name in systems),
        f"{shown_sizes(args)}, random weights; float32, beam {args.beam}, --max-tokens {args.max_tokens}. Every "
        f"{args.every}th batch of the test set; {args.rounds} rounds by turns, medians (range). Collating is included. "
        "Stock systems sort the test set by length; documents stay together. The reference is the prefix, so that all "
        "systems write the same translations. A step computes the next token of all sentences in the decoder.",
        table(["system", "tokens/s", *(f"÷ {other}" for other in others), "tokens", "steps", "sentences/step"], rows),
    ]


if __name__ == "__main__":
    sys.exit(run_benchmark("benchmarks.speed.generation_speed"))
