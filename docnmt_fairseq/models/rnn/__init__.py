"""``document_rnn``: recurrent encoder and decoder with attention."""

from docnmt_fairseq.models.rnn import model  # noqa: F401  (registers the model and its architectures)
