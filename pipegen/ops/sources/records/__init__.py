"""Holds what sources of records have in common: files (shards) that hold many records each, whose index is built once and kept."""
