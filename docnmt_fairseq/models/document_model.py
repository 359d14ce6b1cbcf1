"""What all models of documents have in common: their options, and training on packed target words."""

from argparse import Namespace
from dataclasses import MISSING, fields
from typing import Dict, Tuple, Type

from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from omegaconf import OmegaConf
from torch import Tensor

from docnmt_fairseq.layout import DocumentLayout


class DocumentModel:
    """Stands before fairseq's own class among the bases of a model.

    Class attributes:
        options: the dataclass of its options.
        takes_layout: the task leaves the layout out for models that do not say so: fairseq's own.
    """

    options: Type[FairseqDataclass]
    takes_layout = True

    @classmethod
    def add_args(cls, parser: object) -> None:
        """Adds the options without defaults, so that architecture presets apply."""
        gen_parser_from_dataclass(parser, cls.options(), delete_default=True)

    @classmethod
    def complete(cls, cfg: object) -> Namespace:
        """Returns a plain configuration with every option; one newer than the checkpoint is how it was before."""
        if OmegaConf.is_config(cfg):
            cfg = Namespace(**OmegaConf.to_container(cfg, resolve=True, enum_to_str=True))
        for known in fields(cls.options):
            if not hasattr(cfg, known.name):
                default = known.default if known.default_factory is MISSING else known.default_factory()
                setattr(cfg, known.name, default)
        return cfg

    def layout_for(self, layout: DocumentLayout, prev_output_tokens: Tensor) -> DocumentLayout:
        """Returns the batch with the targets that the decoder is given, [S, m_t]: rescoring brings others."""
        if layout.targets is not None and self.training:
            return layout
        return layout.with_targets(prev_output_tokens.ne(self.decoder.padding_idx).sum(1).cpu().numpy())

    def output_of(self, packed: Tensor, extra: Dict[str, object], layout: DocumentLayout, width: int) -> Tuple:
        """Returns what ``forward`` gives: in training packed [target tokens, …], else [S, width, …]; and extras."""
        if self.training:
            return packed, {**extra, "targets": layout.targets}
        return layout.targets.pad(packed, width=width), extra

    def get_targets(self, sample: Dict, net_output: Tuple) -> Tensor:
        """Returns the targets, packed [target tokens] if the output is: the loss is computed on real tokens only."""
        rows = net_output[1].get("targets")
        return sample["target"] if rows is None else rows.pack(sample["target"])
