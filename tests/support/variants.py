"""One tiny model of every mechanism, placement and architecture."""

from fairseq.models import ARCH_MODEL_REGISTRY

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, DECODER_MECHANISMS, TARGET_MECHANISMS
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS
from tests.support import toy

SOURCES = ["--extra-sources", "previous:1,next:2,random"]
OVERLAP = ["--max-document-sentences", "2", "--context-overlap", "1"]
TINY = [  # the size of all architectures of documents
    name for name, model in ARCH_MODEL_REGISTRY.items()
    if model.__module__.startswith("docnmt_fairseq") and name.endswith("_tiny") and not name.startswith("concatenation")
]  # fmt: skip
VARIANTS = {name: ["--arch", name] for name in TINY}
VARIANTS["document_rnn_zeng_tiny"] += ["--decoder-out-embed-dim", "4"]  # as its decoder's state
for _name in CONTEXT_MECHANISMS.names():
    for _placement in CONTEXT_MECHANISMS[_name].placements:
        VARIANTS[f"{_name} {_placement}"] = ["--context-attention", _name, "--context-placement", _placement]
for _name in DECODER_MECHANISMS.names():
    VARIANTS[f"{_name} in the decoder"] = ["--decoder-context-attention", _name]
for _name in TARGET_MECHANISMS.names():
    VARIANTS[f"{_name} of targets"] = ["--target-context-attention", _name]
for _name in ATTENTION_COMBINATIONS.names():
    VARIANTS[f"{_name} sources"] = [*SOURCES, "--attention-combination", _name]
VARIANTS["selection loss"] = ["--context-attention", "conditional", "--context-top-t", "2", "--selection-loss", "1"]
VARIANTS["selection loss before narrowing"] = [*VARIANTS["selection loss"], "--context-top-t-anneal-start", "9"]
VARIANTS["selection loss"] += ["--selection-loss-phase", "always"]
VARIANTS["pieces"] = ["--context-attention", "conditional", *OVERLAP]
VARIANTS["shared encoder"] = [*SOURCES, "--attention-combination", "flat", "--extra-encoder", "shared", *OVERLAP]
VARIANTS["two recurrent layers"] = ["--arch", "document_rnn_tiny", "--decoder-layers", "2", "--encoder-layers", "2"]
VARIANTS["recurrent, flat sources"] = ["--arch", "document_rnn_tiny", *SOURCES, "--attention-combination", "flat"]


def build(name, data_bin):
    """Returns the task and the model of a variant."""
    options = VARIANTS[name]
    arch = options[1] if options[0] == "--arch" else "document_transformer"
    extra = options[2:] if options[0] == "--arch" else options
    _, task, model = toy.build(data_bin, *extra, arch=arch, tiny=toy.TINY if "transformer" in arch else toy.TINY_RNN)
    return task, model
