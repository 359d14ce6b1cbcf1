"""Batches of documents: packed rows, document structure, attention plans, transfer to the device. Pure PyTorch."""
