"""Contrastive test sets: accuracy of preferring the correct translation; one file per format."""
