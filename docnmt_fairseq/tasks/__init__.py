"""fairseq tasks. fairseq imports this folder for ``--user-dir docnmt_fairseq``, which registers everything else."""

import docnmt_fairseq

docnmt_fairseq.register()
