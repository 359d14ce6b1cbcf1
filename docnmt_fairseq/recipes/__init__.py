"""From a data set's name to a table of scores: get, prepare, train, translate, probe, score. Run again, it goes on."""
