"""A batch: rows of different lengths, which of them look at which, and the documents that they make. Pure PyTorch."""
