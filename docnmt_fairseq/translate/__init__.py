"""Text in, translated text out."""
