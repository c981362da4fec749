"""Records as tensors: files, rows, caches and damaged records."""
