"""Says what every source gives: the list of its records, in columns, and the reader that reads them."""
