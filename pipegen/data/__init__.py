"""Lists the records and assigns each to a split. It reads names and sizes, never pixels."""
