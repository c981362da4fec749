"""Tables whose rows name files, labels and numbers: one module per format, and what a source does with the rows."""
