"""``document_rnn``: a recurrent encoder and a recurrent decoder with attention."""

from docnmt_fairseq.models.rnn import model  # noqa: F401  (registers the model and its architectures)
