"""Defines what a test of the data is, and holds what tests of one kind share, as `families/` does for steps."""
