"""HTML report about a checkpoint and a document: context of each word, scores and training."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional, Sequence

from docnmt_fairseq.options import CheckedOptions, option


@dataclass(frozen=True)
class ReportOptions(CheckedOptions):
    """Options of ``docnmt report``."""

    path: Path = field(metadata={"help": "checkpoint of a document_transformer or document_rnn", "metavar": "FILE"})
    data: Path = field(metadata={"help": "data-bin, or output of docnmt prepare", "metavar": "DIR"})
    split: str = option("test", "split with the document", metavar="NAME")
    input: Optional[Path] = option(None, "delimited text with the document", metavar="FILE")
    document: int = option(1, "number of the document", minimum=1)
    tokenized: bool = option(
        False, "text of --input and --scat is tokenised (always so without output of docnmt prepare)"
    )
    beam: int = option(4, "beam size", minimum=1)
    results: Sequence[Path] = option(
        list,
        "JSON output of docnmt score, for tables and charts; may be repeated",
        action="append",
        nargs=None,
        metavar="FILE",
    )
    scat: Optional[Path] = option(
        None,
        "SCAT: PREFIX.LANG and PREFIX.context.LANG of both languages, for agreement with highlighted words",
        metavar="PREFIX",
    )
    log: Optional[Path] = option(None, "output of fairseq-train, for training curves", metavar="FILE")
    source_weights: Optional[Path] = option(None, "also draw the weights of several sources (PNG)", metavar="FILE")
    sentence: Optional[int] = option(None, "sentence of --source-weights (default: the first three)")
