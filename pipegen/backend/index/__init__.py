"""The records of each step, in order, and all random numbers of each."""
