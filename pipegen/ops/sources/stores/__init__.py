"""Files of records that a library reads, a file for each format. They are imported where data is listed or read, and NumPy with them."""
