"""Trained models in forms that are only good for translating: checkpoints in fewer bits, other engines' models."""
