"""HTML report about a checkpoint and a document: context of each word, scores and training."""
