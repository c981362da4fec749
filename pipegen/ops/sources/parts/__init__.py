"""Joins sources that are parts of one: the splits of `by_split`, the parts of `mix`."""
