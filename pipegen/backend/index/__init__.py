"""Names the records of each step, in their order, and draws every random number of each."""
