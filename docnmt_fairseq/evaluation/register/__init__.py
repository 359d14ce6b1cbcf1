"""Which second person a line uses, by rules: one file for each language, registered under its code."""

from docnmt_fairseq.evaluation.register.base import RULES, RegisterRule
from docnmt_fairseq.registry import import_folder

__all__ = ["RULES", "RegisterRule"]

import_folder(__name__, __path__)
