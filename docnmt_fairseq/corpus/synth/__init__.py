"""Artificial parallel documents in which some target words cannot be decided from their sentence.

``language`` contains the options and invents the languages, ``documents`` plans and writes documents, ``writer`` writes
the files and computes the best accuracy without context.
"""

from docnmt_fairseq.corpus.synth.documents import Case
from docnmt_fairseq.corpus.synth.language import KINDS, SynthOptions
from docnmt_fairseq.corpus.synth.writer import read_cases, write_corpus

__all__ = ["KINDS", "Case", "SynthOptions", "read_cases", "write_corpus"]
