"""What every source returns: the list of its records, in columns, and a reader of them."""
