"""Experiments that compute our figures for published tables, one kind per file."""

from docnmt_fairseq.registry import import_folder

import_folder(__name__, __path__)
