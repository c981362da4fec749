"""Makes the datasets that users hold, their iterators, and the variables that say where training stands."""
