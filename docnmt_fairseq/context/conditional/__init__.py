"""Conditional attention: attention to the tokens of the most relevant sentences, which each token selects ([T])."""

from docnmt_fairseq.registry import import_folder

import_folder(__name__, __path__)
