"""Knows what belongs to this process: threads, memory, variables, and what happens once."""
