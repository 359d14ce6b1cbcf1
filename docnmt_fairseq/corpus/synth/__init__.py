"""Artificial parallel documents in which some target words cannot be decided from their sentence.

``language`` contains the options and invents the languages, ``documents`` plans and writes documents, ``cases``
describes the undecidable words and the best accuracy without context, ``writer`` writes the files.
"""

from docnmt_fairseq.corpus.synth.cases import Case, read_cases
from docnmt_fairseq.corpus.synth.language import KINDS, SynthOptions
from docnmt_fairseq.corpus.synth.writer import write_corpus

__all__ = ["KINDS", "Case", "SynthOptions", "read_cases", "write_corpus"]
