"""Fields, what sources store and kinds are built from: texts, labels and numbers, in columns. They know neither."""
