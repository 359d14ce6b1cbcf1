"""Export formats; importing the package registers them."""

from docnmt_fairseq.registry import import_folder

import_folder(__name__, __path__)
