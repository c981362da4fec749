"""Walks folders: which files there are, what they are by their content, and what was passed over."""
