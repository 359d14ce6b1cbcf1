"""How documents are searched for translations."""
