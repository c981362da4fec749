"""Prepared stores: the results of a plan up to its last deterministic step, and the spec that continues from there."""
