"""Walks folders, recognises images by content, and reports what was ignored."""
