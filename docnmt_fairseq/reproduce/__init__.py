"""Published tables: reruns their experiments and compares our figures with the published ones."""
