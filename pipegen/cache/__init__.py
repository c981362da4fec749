"""Caches on disk: what identifies one, how its files are laid out, and what of it is whole. Nothing here knows TensorFlow."""
