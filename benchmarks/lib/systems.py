"""Systems to train: fairseq's own task and model beside this package's, built from command lines."""

import argparse
from contextlib import nullcontext
from typing import Iterator, List, Optional

import numpy as np
import torch
from fairseq import optim, options, tasks, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.optim import fp16_optimizer

import docnmt_fairseq
from benchmarks.lib.machine import ROOT
from benchmarks.lib.unchanged import unchanged
from docnmt_fairseq.models.base import batch_for_model
from docnmt_fairseq.recipes.models import model as recipe
from docnmt_fairseq.tasks.concatenated_translation import ConcatenatedTranslationTask
from docnmt_fairseq.training_data import TrainingData

docnmt_fairseq.register()

DOCUMENT = ["--task", "document_translation", "--arch", "document_transformer"]
SYSTEMS = {
    "stock": ["--task", "translation", "--arch", "transformer"],
    "sentence": [*DOCUMENT, "--context", "none"],
    "conditional": [*DOCUMENT, "--context", "document", "--context-attention", "conditional", "--context-top-t", "4"],
    "ca-nn": [*DOCUMENT, "--context", "none", "--feed-forward", "ca-nn"],
    "ca-res": [*DOCUMENT, "--context", "none", "--feed-forward", "ca-res"],
}
DESCRIPTIONS = {
    "stock": "stock: task translation, model transformer",
    "sentence": "sentence: document_transformer, --context none",
    "conditional": "conditional: document_transformer, 4 most relevant sentences, upper half of the layers",
}


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds the data, the sizes of batches and models and the seed."""
    parser.add_argument("data_bin")
    parser.add_argument("--max-tokens", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--ffn", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)


def sizes(args: object, tiny: bool) -> List[str]:
    """Returns the options of a model's sizes; ``tiny``: as many layers, but no width, to count positions only."""
    width, feed_forward, heads = (4, 4, 1) if tiny else (args.width, args.ffn, args.heads)
    words = ["--dropout", args.dropout, "--encoder-layers", args.layers, "--decoder-layers", args.layers]
    for side in ("encoder", "decoder"):
        words += [f"--{side}-embed-dim", width, f"--{side}-ffn-embed-dim", feed_forward]
        words += [f"--{side}-attention-heads", heads]
    return [str(word) for word in words]


def options_of(name: str) -> List[str]:
    """Returns the options of a system: of ``SYSTEMS``, or a model of the recipes, selecting from the start."""
    if name in SYSTEMS:
        return SYSTEMS[name]
    model = recipe(name)
    own = model.options(0)
    at_once = ["--context-top-t-anneal-threshold", "0"] if "--context-top-t" in own else []
    return ["--task", model.task, "--arch", model.arch, *own, *at_once]


def sentences_of(name: str) -> int:
    """Returns how many sentences a sample of a system holds."""
    return 1 if name in SYSTEMS else recipe(name).sentences


def configuration(name: str, args: object, tiny: bool = False) -> object:
    """Returns fairseq's configuration of a system, from a command line.

    Args:
        name: see :func:`options_of`. Batches hold as many sentences for every one.
        args: the benchmark's options; ``args.more`` goes to all models.
        tiny: see :func:`sizes`.
    """
    words = [args.data_bin, "--user-dir", str(ROOT / "docnmt_fairseq"), *options_of(name), *sizes(args, tiny)]
    words += ["--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1", "--optimizer", "adam"]
    words += ["--adam-betas", "(0.9, 0.98)", "--lr", "0.0001", "--cpu"]
    words += ["--max-tokens", str(args.max_tokens * sentences_of(name))]
    words += ["--num-workers", "0", "--seed", str(args.seed), *args.more]
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), words))


def first_linear(layer: torch.nn.Module) -> torch.nn.Module:
    """Returns W_1 of a layer's feed-forward, of stock fairseq's layers and of this package's."""
    return getattr(layer, "feed_forward", layer).fc1


class System:
    """A task with its train set, a model, a criterion and an optimiser; arguments as of :func:`configuration`.

    ``cfg`` is what that returned before, where many systems are alike: to make it takes long. ``alone``: half types
    are trained as by fairseq without this package; "stock" always is.
    """

    def __init__(self, name: str, args: object, tiny: bool = False, cfg: Optional[object] = None, alone: bool = False):
        cfg = configuration(name, args, tiny) if cfg is None else cfg
        torch.manual_seed(args.seed)
        self.device = args.device
        self.task = tasks.setup_task(cfg.task)
        self.model = self.task.build_model(cfg.model).train().to(self.device)
        concatenated = isinstance(self.task, ConcatenatedTranslationTask)
        self.break_index = self.task.target_dictionary.index(self.task.view("break_symbol")) if concatenated else -1
        self.criterion = self.task.build_criterion(cfg.criterion)
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        if cfg.common.bf16 or cfg.common.fp16:  # as fairseq's trainer does
            half = torch.bfloat16 if cfg.common.bf16 else torch.float16
            self.model, self.criterion = self.model.to(half), self.criterion.to(half)
            wrapping = unchanged(fp16_optimizer) if alone or name == "stock" else optim
            self.optimizer = wrapping.FP16Optimizer.build_optimizer(cfg, parameters)
        else:
            self.optimizer = optim.build_optimizer(cfg.optimizer, parameters)
        with self.task.for_training() if isinstance(self.task, TrainingData) else nullcontext():
            self.task.load_dataset("train")
            self.dataset = self.task.dataset("train")
        self.batches = self._batches(cfg.dataset, args.seed)
        self.updates = 0

    def _batches(self, cfg: object, seed: int) -> list:
        """Returns an epoch's batches as fairseq-train makes them, in its random order."""
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
        """Yields collated batches, always anew: a layout remembers what training has worked out for it."""
        for number in range(first, first + count):
            batch = self.batches[number % len(self.batches)]
            yield self.dataset.collater([self.dataset[int(i)] for i in batch])

    def target_tokens(self, sample: dict) -> int:
        """Returns the real target tokens of the sentences to translate, which follow the last break."""
        target = sample["target"]
        breaks_to_come = target.eq(self.break_index).flip(1).cumsum(1).flip(1)
        return int((target.ne(self.task.target_dictionary.pad()) & breaks_to_come.eq(0)).sum())

    def prepared(self, sample: dict) -> dict:
        """Returns a batch as the system's criterion and model take it."""
        return batch_for_model(self.model, sample)

    def step(self, sample: dict, wait: bool = True) -> None:
        """Trains on one batch: forward, backward, Adam.

        Args:
            sample: the batch.
            wait: until a GPU is done with it.
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
