"""Trains all that a file lists, one after another, in the processes that torchrun started: importing takes longest."""

import json
import sys
from pathlib import Path

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.distributed import utils as distributed
from fairseq_cli import train

import docnmt_fairseq

if __name__ == "__main__":
    docnmt_fairseq.register()
    for arguments in json.loads(Path(sys.argv[1]).read_text()):
        args = options.parse_args_and_arch(options.get_training_parser(), arguments)
        distributed.call_main(convert_namespace_to_omegaconf(args), train.main)
