"""Search for translations."""
