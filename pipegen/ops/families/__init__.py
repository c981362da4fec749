"""Families of steps: the contract of each with the backend, and what its steps share."""
