"""Time and memory of layers, trainings and searches, as ratios within one process where that can be."""
