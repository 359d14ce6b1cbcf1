"""Where our figures for published tables come from, each kind one file."""

from docnmt_fairseq.registry import import_folder

import_folder(__name__, __path__)
