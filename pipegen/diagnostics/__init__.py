"""Findings as values, the catalogue of codes, and the renderers that show them."""
