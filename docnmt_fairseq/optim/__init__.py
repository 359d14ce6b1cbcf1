"""Optimisers; fairseq imports those of its own only, so that :mod:`docnmt_fairseq.tasks` imports these."""
