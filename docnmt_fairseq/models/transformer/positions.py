"""The positions that a model's options ask for ([T] sec. 1.2)."""

from typing import Dict

from docnmt_fairseq.layers.positions import ADDED_LEVELS, PositionTable
from docnmt_fairseq.models.transformer.config import DocumentTransformerOptions


def word_positions(cfg: DocumentTransformerOptions, padding_idx: int) -> PositionTable:
    """What embeds tokens' positions; the rows are fairseq's, which begin after the padding's.

    Args:
        cfg: the model's options.
        padding_idx: number of the padding.
    """
    return PositionTable(str(cfg.word_positions), cfg.max_source_positions, padding_idx + 1, str(cfg.sinusoids))


def added_positions(cfg: DocumentTransformerOptions) -> Dict[str, PositionTable]:
    """What embeds those of each level above."""
    sizes = {"sentence": cfg.max_sentence_positions, "paragraph": cfg.max_paragraph_positions}
    return {
        level: PositionTable(str(getattr(cfg, f"{level}_positions")), sizes.get(level, cfg.max_section_positions))
        for level in ADDED_LEVELS
    }
