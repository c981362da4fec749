"""The sources: one file each, and what they share for listing files."""
