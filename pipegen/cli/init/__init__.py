"""`pipegen init`: examines data and writes a first spec for it."""
