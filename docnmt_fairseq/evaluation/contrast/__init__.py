"""Contrastive test sets: is the true translation more likely than the false ones? A file of its own for each format."""
