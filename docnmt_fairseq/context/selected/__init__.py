"""Mechanisms with selected context sentences, such as the previous ones or the most similar ones."""

from docnmt_fairseq.registry import import_folder

import_folder(__name__, __path__)
