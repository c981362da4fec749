"""Compares two specs, as they are now or at a revision, and says what that means for the numbers that a model sees."""
