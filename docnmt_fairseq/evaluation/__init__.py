"""What was translated, measured: scores, words that need context, reports and pictures."""
