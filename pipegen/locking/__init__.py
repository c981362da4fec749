"""Locks: records of all that a spec depends on (texts, packages, commits, data, functions, versions), and checks against them."""
