"""What benchmarks share: the machine, stored runs, systems to train, peak memory."""
