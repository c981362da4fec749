"""Files of many records: finds them, reads the tables of contents of archives, and says what is odd in them."""
