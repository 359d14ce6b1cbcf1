"""``document_transformer``: fairseq's Transformer with context between the sentences of a document."""

from docnmt_fairseq.models.transformer import presets  # noqa: F401  (registers the model and its architectures)
