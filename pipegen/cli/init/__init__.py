"""Looks at data and writes a first spec for it: `pipegen init`."""
