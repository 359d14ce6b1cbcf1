"""Former places of modules: they can still be imported, with a warning that names the new place.

Places are written without ``docnmt_fairseq.``. To move a module, add a line to ``MODULES``.
"""

import importlib
import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Dict, Optional

PREFIX = f"{__package__}."

EMPTY = ("modules",)  # packages that are no more

# From version 0.1.0; of a package, also what is in it.
MODULES = {
    "buckets": "batch.grouping",
    "corpus.text_steps": "corpus.text_codec",
    "data.document_dataset": "data.dataset",
    "data.document_index": "data.index",
    "data.further_data": "data.extra_sources",
    "data.line_source": "data.extra_sources",
    "data.open_document": "data.interactive",
    "data.source_specs": "data.extra_source_specs",
    "embedding.similarity": "evaluation.sentence_similarity",
    "evaluation.comet": "evaluation.metrics.comet",
    "evaluation.hter": "evaluation.scores",
    "evaluation.options": "cli._options",
    "evaluation.tokenized_bleu": "evaluation.scores",
    "layout": "batch.layout",
    "models.architectures": "models.transformer.presets",
    "models.combination_config": "models.transformer.config",
    "models.combined_attention": "models.transformer.attention",
    "models.concatenation_transformer": "models.concatenation",
    "models.config": "models.transformer.config",
    "models.context_config": "models.transformer.config",
    "models.document_decoder": "models.transformer.decoder",
    "models.document_encoder": "models.transformer.encoder",
    "models.document_model": "models.base",
    "models.document_rnn": "models.rnn.model",
    "models.document_transformer": "models.transformer.model",
    "models.encoder_rows": "models.sources",
    "models.feed_forward": "models.transformer.feed_forward",
    "models.further_config": "models.extra_sources_config",
    "models.further_sources": "models.extra_sources",
    "models.recurrent_config": "models.rnn.config",
    "models.recurrent_decoder": "models.rnn.decoder",
    "models.recurrent_encoder": "models.rnn.encoder",
    "models.sentence_reader": "models.transformer.separate_encoder",
    "models.target_context": "models.transformer.target_context",
    "models.trained_view": "models.base",
    "modules.attention_combination": "multisource",
    "modules.attention_combination.contract": "multisource.base",
    "modules.attention_combination.readers": "multisource.state_sums",
    "modules.ca_attention": "context.selected.ca_att",
    "modules.conditional_attention": "context.conditional.attention",
    "modules.context": "context.base",
    "modules.context_aware_attention": "context.selected.voita",
    "modules.context_aware_layers": "ca_layers",
    "modules.context_aware_layers.chi_gated": "ca_layers.decomposition",
    "modules.context_aware_layers.layer": "ca_layers.feed_forward",
    "modules.context_selection": "batch.neighbours",
    "modules.decomposition": "ca_layers.decomposition",
    "modules.feed_forward": "layers.feed_forward",
    "modules.gate": "layers.gate",
    "modules.hierarchical_attention": "context.selected.han",
    "modules.initialisation": "layers.initialisation",
    "modules.keep_schedule": "context.conditional.schedule",
    "modules.kernels": "context.conditional.kernels",
    "modules.kernels.choosing": "context.conditional.kernels.pytorch.choosing",
    "modules.kernels.chosen_scores": "context.conditional.kernels.pytorch.chosen_scores",
    "modules.kernels.compiled": "context.conditional.kernels.cpu.kernel",
    "modules.kernels.grouped": "context.conditional.kernels.pytorch.kernel",
    "modules.kernels.grouped_attention": "context.conditional.kernels.pytorch.grouped_attention",
    "modules.kernels.kernel": "context.conditional.kernels.base",
    "modules.kernels.masked_documents": "context.conditional.kernels.pytorch.masked_documents",
    "modules.kernels.pair_attention": "context.conditional.kernels.pytorch.pair_attention",
    "modules.kernels.pair_blocks": "context.conditional.kernels.pytorch.pair_blocks",
    "modules.kernels.precision": "layers.precision",
    "modules.masked_attention": "layers.multi_head",
    "modules.memory_network": "context.selected.memory_network",
    "modules.memory_plan": "context.selected.memory_network",
    "modules.multi_head": "layers.multi_head",
    "modules.positions": "layers.positions",
    "modules.ragged_attention": "layers.ragged_attention",
    "modules.recording": "layers.recording",
    "modules.recurrent": "recurrent",
    "modules.recurrent.contract": "recurrent.cells",
    "modules.recurrent.deep_output": "recurrent.layers",
    "modules.recurrent.products": "recurrent.ca_rnn_steps",
    "modules.recurrent.steps": "batch.steps",
    "modules.recurrent.torch_cells": "recurrent.cells",
    "modules.registry": "registry",
    "modules.segments": "layers.positions",
    "modules.self_attention": "layers.multi_head",
    "modules.sentence_attention": "context.sentence_encodings",
    "modules.sentence_encoders": "layers.sentence_encoders",
    "modules.sentence_selection": "context.conditional.selection",
    "modules.sentence_tree": "context.conditional.tree",
    "modules.source_states": "multisource.source_states",
    "modules.tree_attention": "context.conditional.tree_attention",
    "modules.tree_merges": "layers.sentence_encoders",
    "modules.tree_selection": "context.conditional.tree_search",
    "ragged": "batch.ragged",
    "recipes.facts": "recipes.dataset",
    "report.loading": "checkpoints",
    "search.loading": "translate.task",
    "search.text_files": "translate.files",
    "search.translator": "translate.translator",
}

# Modules whose contents went to several places: by name.
NAMES = {
    "evaluation.loading": {
        "Loaded": "checkpoints.Ensemble",
        "TextCodec": "corpus.text_codec.TextCodec",
        "data_bin": "corpus.prepared.data_bin",
        "load": "checkpoints.load_ensemble",
    },
}


def new_place(module: str) -> Optional[str]:
    """The place of today of a module's former one, None if it never was one."""
    start, rest = module, ""
    while start:
        if start in MODULES:
            return MODULES[start] + rest
        start, dot, last = start.rpartition(".")
        rest = dot + last + rest
    return None


class FormerModules(MetaPathFinder, Loader):
    """Finds modules by their former places; they are the very modules of today."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> Optional[ModuleSpec]:
        """The specification of a former module, None of all others."""
        module = fullname.removeprefix(PREFIX)
        if module == fullname or not (module in EMPTY or module in NAMES or new_place(module)):
            return None
        return ModuleSpec(fullname, self, is_package=module in EMPTY)

    def create_module(self, spec: ModuleSpec) -> None:
        """Leaves it to Python to make an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Puts the module of today in the place of the empty one, or fills it."""
        former = module.__name__.removeprefix(PREFIX)
        if former in NAMES:
            _warn(former, ", ".join(sorted(set(NAMES[former].values()))))
            vars(module).update(_contents(NAMES[former]))
        elif former not in EMPTY:
            place = str(new_place(former))
            sys.modules[module.__name__] = importlib.import_module(PREFIX + place)
            _warn(former, place)


def _contents(names: Dict[str, str]) -> Dict[str, object]:
    found = {}
    for name, place in names.items():
        module, _, today = place.rpartition(".")
        found[name] = getattr(importlib.import_module(PREFIX + module), today)
    return found


def _warn(former: str, place: str) -> None:
    # The frames between this one and the import are Python's own, which are not counted, and ``exec_module``.
    warnings.warn(f"{PREFIX}{former} is now {PREFIX}{place}", DeprecationWarning, stacklevel=3)


def install() -> None:
    """Lets Python find former modules; first of all, or it would load files of moved packages a second time."""
    if not any(isinstance(finder, FormerModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, FormerModules())
