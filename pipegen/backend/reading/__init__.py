"""Reads records as tensors: files, rows and caches, and what becomes of a damaged one."""
