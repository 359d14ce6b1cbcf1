"""Recipes: from a data set to a table of scores. An interrupted run is resumed."""
