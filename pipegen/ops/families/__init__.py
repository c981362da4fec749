"""Holds what the steps of a family share: its contract with the backend, and what several of its steps have in common."""
