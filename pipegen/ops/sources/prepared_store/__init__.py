"""Says how a store of `pipegen prepare` lies on the disk, and reads it."""
