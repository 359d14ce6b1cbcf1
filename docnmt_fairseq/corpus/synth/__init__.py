"""Artificial parallel documents in which some target words cannot be decided from their sentence.

``options`` says what can be set, ``lexicon`` invents the two languages, ``plan`` lays a document out, ``document`` puts
words to the plan, ``table`` names the undecidable words, ``ceiling`` bounds what a model without context can reach, and
``writer`` puts it all on disk.
"""

from docnmt_fairseq.corpus.synth.options import KINDS, SynthOptions
from docnmt_fairseq.corpus.synth.table import Case, read_cases
from docnmt_fairseq.corpus.synth.writer import write_corpus

__all__ = ["KINDS", "Case", "SynthOptions", "read_cases", "write_corpus"]
