"""The physical plan: which operations of `tf.data` run, what each calls and on how much at a time, decided once, after the passes."""
