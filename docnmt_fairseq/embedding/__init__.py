"""Sentence vectors from word vectors ([Z] sec. 3.1), baselines, and similar sentences as context.

``[Z]`` is Y. Zeng, Context Aware Machine Learning; sections, equations and algorithms as numbered there.
"""
