"""Files of records read by a library: the base of those that read a format, the types of what they hold, SQLite tables and LMDB keys."""
