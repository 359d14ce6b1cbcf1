"""Systems to train: fairseq's own task and model, and those of this package, built from command lines."""

import argparse
from collections.abc import Iterator

import numpy as np
import torch
from fairseq import optim, options, tasks, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import docnmt_fairseq
from benchmarks.lib.reporting import ROOT
from docnmt_fairseq.models.base import batch_for_model
from docnmt_fairseq.recipes.models import model as recipe_model
from docnmt_fairseq.tasks.concatenated_translation import ConcatenatedTranslationTask

docnmt_fairseq.register()

STOCK = "stock"
DOCUMENT = ["--task", "document_translation", "--arch", "document_transformer"]
SYSTEMS = {
    STOCK: ["--task", "translation", "--arch", "transformer"],
    "sentence": [*DOCUMENT, "--context", "none"],
    "conditional": [*DOCUMENT, "--context", "document", "--context-attention", "conditional", "--context-top-t", "4"],
    "ca-nn": [*DOCUMENT, "--context", "none", "--feed-forward", "ca-nn"],
    "ca-res": [*DOCUMENT, "--context", "none", "--feed-forward", "ca-res"],
}


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds options for data, batch size, model size, seed and device."""
    parser.add_argument("data_bin")
    parser.add_argument("--max-tokens", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--ffn", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))


def shown_sizes(args: argparse.Namespace) -> str:
    """Returns the model size in words."""
    return f"{args.layers} + {args.layers} layers, width {args.width}, feed-forward {args.ffn}, {args.heads} heads"


def size_options(args: argparse.Namespace) -> list[str]:
    """Returns the options of fairseq-train for the model size."""
    words = ["--dropout", args.dropout, "--encoder-layers", args.layers, "--decoder-layers", args.layers]
    for side in ("encoder", "decoder"):
        words += [f"--{side}-embed-dim", args.width, f"--{side}-ffn-embed-dim", args.ffn]
        words += [f"--{side}-attention-heads", args.heads]
    return [str(word) for word in words]


def system_options(name: str) -> list[str]:
    """Returns the options of a system of ``SYSTEMS`` or a recipe model, which selects from the first update on."""
    if name in SYSTEMS:
        return SYSTEMS[name]
    model = recipe_model(name)
    own = model.options(0)
    selecting = ["--context-top-t-anneal-threshold", "0"] if "--context-top-t" in own else []
    return ["--task", model.task, "--arch", model.arch, *own, *selecting]


def configuration(name: str, args: argparse.Namespace) -> object:
    """Returns fairseq's configuration of a system.

    Args:
        name: see :func:`system_options`. Batches hold the same number of sentences for every system.
        args: options of the benchmark; ``args.more`` is passed to all models.
    """
    sentences = 1 if name in SYSTEMS else recipe_model(name).sentences
    words = [args.data_bin, "--user-dir", str(ROOT / "docnmt_fairseq"), *system_options(name), *size_options(args)]
    words += ["--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1", "--optimizer", "adam"]
    tokens = str(args.max_tokens * sentences)
    words += ["--adam-betas", "(0.9, 0.98)", "--lr", "0.0001", "--cpu", "--max-tokens", tokens]
    words += ["--num-workers", "0", "--seed", str(args.seed), *args.more]
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), words))


class System:
    """A task with its training set, a model, a criterion and an optimizer; arguments as in :func:`configuration`."""

    def __init__(self, name: str, args: argparse.Namespace):
        cfg = configuration(name, args)
        torch.manual_seed(args.seed)
        self.device = args.device
        self.task = tasks.setup_task(cfg.task)
        self.model = self.task.build_model(cfg.model).train().to(self.device)
        concatenated = isinstance(self.task, ConcatenatedTranslationTask)
        self.break_index = self.task.target_dictionary.index(self.task.view("break_symbol")) if concatenated else -1
        self.criterion = self.task.build_criterion(cfg.criterion)
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        if cfg.common.bf16 or cfg.common.fp16:  # as fairseq's trainer does
            half = torch.bfloat16 if cfg.common.bf16 else torch.float16
            self.model, self.criterion = self.model.to(half), self.criterion.to(half)
            self.optimizer = optim.FP16Optimizer.build_optimizer(cfg, trained)
        else:
            self.optimizer = optim.build_optimizer(cfg.optimizer, trained)
        self.task.load_dataset("train")
        self.dataset = self.task.dataset("train")
        self.batches = self._batches(cfg.dataset, args.seed)
        self.updates = 0

    def _batches(self, cfg: object, seed: int) -> list:
        """Returns the batches of an epoch as fairseq-train makes them, in random order."""
        positions = utils.resolve_max_positions(self.task.max_positions(), self.model.max_positions())
        iterator = self.task.get_batch_iterator(
            self.dataset,
            max_tokens=cfg.max_tokens,
            max_positions=positions,
            ignore_invalid_inputs=True,
            required_batch_size_multiple=cfg.required_batch_size_multiple,
            seed=seed,
        )
        batches = list(iterator.frozen_batches)
        return [batches[i] for i in np.random.default_rng(seed).permutation(len(batches))]

    def samples(self, first: int, count: int) -> Iterator[dict]:
        """Yields newly collated batches (a layout caches what training computes for it)."""
        for number in range(first, first + count):
            batch = self.batches[number % len(self.batches)]
            yield self.dataset.collater([self.dataset[int(i)] for i in batch])

    def target_tokens(self, sample: dict) -> int:
        """Returns the number of target tokens, without those of context that a concatenation model writes again."""
        target = sample["target"]
        breaks_to_come = target.eq(self.break_index).flip(1).cumsum(1).flip(1)
        return int((target.ne(self.task.target_dictionary.pad()) & breaks_to_come.eq(0)).sum())

    def prepared(self, sample: dict) -> dict:
        """Returns a batch in the form that criterion and model take."""
        return batch_for_model(self.model, sample)

    def step(self, sample: dict, wait: bool = True) -> None:
        """Trains on one batch: forward, backward, optimizer.

        Args:
            sample: batch.
            wait: wait for the GPU.
        """
        if self.device != "cpu":
            sample = utils.move_to_cuda(sample)
        self.optimizer.zero_grad()
        _, size, _ = self.task.train_step(sample, self.model, self.criterion, self.optimizer, self.updates)
        self.optimizer.multiply_grads(1 / size)
        self.optimizer.step()
        self.updates += 1
        if wait and self.device != "cpu":
            torch.cuda.synchronize()

    def optimizer_bytes(self) -> int:
        """Returns the size of the optimizer state."""
        states = self.optimizer.optimizer.state.values()
        return sum(one.nbytes for state in states for one in state.values() if isinstance(one, torch.Tensor))
