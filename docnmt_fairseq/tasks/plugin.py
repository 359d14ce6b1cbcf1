"""Entry point of ``--user-dir docnmt_fairseq``: fairseq imports every file of this folder."""

import docnmt_fairseq

docnmt_fairseq.register()
