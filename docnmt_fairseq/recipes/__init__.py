"""From a data set's name to a table of scores: get, prepare, train, translate, score. Run again, it goes on."""
