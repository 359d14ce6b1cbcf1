"""Building blocks that several mechanisms and models share. Pure PyTorch."""
