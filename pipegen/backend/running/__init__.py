"""Turns a plan into a dataset."""
