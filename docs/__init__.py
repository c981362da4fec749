"""Documentation, and what makes its pictures."""
