"""A server that translates documents: HTTP in front, one translator behind, requests side by side in one search."""
