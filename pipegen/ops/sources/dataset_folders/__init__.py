"""Reads the metadata that a library of data sets wrote beside its records."""
