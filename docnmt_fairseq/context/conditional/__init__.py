"""Conditional attention ([T] eq. 3-7): every head and token chooses the sentences that it looks at."""

from docnmt_fairseq.registry import import_folder

import_folder(__name__, __path__)
