"""Manifests of files that hold many records each. It is imported where a source lists such, and NumPy with it."""
