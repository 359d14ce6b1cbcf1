"""How much a model uses the context that it is given: CXMI, and what false context does."""
