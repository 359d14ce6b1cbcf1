"""Small classifiers of texts and images with context-aware layers, trained as [Z] sec. 4.2, 4.6 and 4.7 say."""
