"""Takes arrays for records, a row each: from memory, or mapped from `.npy` and `.npz` files."""
