"""Arrays with a record per row: from memory, or mapped from `.npy` and `.npz` files."""
