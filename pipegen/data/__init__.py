"""Which records there are, and which split each is in. Reads names and sizes, never pixels."""
