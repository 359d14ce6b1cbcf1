"""Sentence vectors from word vectors ([Z] sec. 3.1), what they are compared with, and what they are used for.

``[Z]`` is Y. Zeng, Context Aware Machine Learning; sections, equations and algorithms as numbered there.
"""
