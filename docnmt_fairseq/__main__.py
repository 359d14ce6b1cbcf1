"""``python -m docnmt_fairseq`` is ``docnmt``, wherever the package is and whether or not scripts are on the path."""

import sys

from docnmt_fairseq.cli import main

sys.exit(main())
