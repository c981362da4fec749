"""Builds a `Pipeline` from a spec, and is what users hold."""
