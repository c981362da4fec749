"""Caches on disk: their keys, their files, and checks of their contents, without TensorFlow."""
