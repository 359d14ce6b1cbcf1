"""Mechanisms whose context is some sentences of the document, chosen by their place or by likeness."""

from docnmt_fairseq.registry import import_folder

import_folder(__name__, __path__)
