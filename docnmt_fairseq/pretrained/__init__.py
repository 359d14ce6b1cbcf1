"""Released pretrained models as models of this package: ``docnmt import``."""
