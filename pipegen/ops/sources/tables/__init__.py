"""Reads tables, whose rows name files, labels and numbers: a file for each format, and what a source does with the rows."""
