"""Prepares data once: runs a plan up to its last deterministic step, stores what comes out, and writes the spec that goes on from there."""
