"""Merges: the encoding of a tree's node from those of its two children, chosen by name ([T] sec. 3.3.1).

A merge is a sentence encoder that sees two nodes where a sentence encoder sees words.
"""

from docnmt_fairseq.modules.registry import Registry
from docnmt_fairseq.modules.sentence_encoders import SENTENCE_ENCODERS, SentenceEncoder

TREE_MERGES: Registry[SentenceEncoder] = Registry("tree merge")
TREE_MERGES.register("average")(SENTENCE_ENCODERS["mean"])
TREE_MERGES.register("source2token")(SENTENCE_ENCODERS["source2token"])
TREE_MERGES.register("multi-dim-source2token")(SENTENCE_ENCODERS["multi-dim-source2token"])
