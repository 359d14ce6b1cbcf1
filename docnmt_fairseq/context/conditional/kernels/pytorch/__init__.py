"""Kernel ``torch``: plain PyTorch, on every device and type."""
