"""Files of records read by a library, one module per format. Imported only where data is listed or read, with NumPy."""
