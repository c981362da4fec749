"""Data on other machines: what a source names by an address is kept on the local disk, and read there."""
