"""Metadata that dataset libraries write beside their records."""
