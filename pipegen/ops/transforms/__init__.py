"""The steps of a spec; `pipegen.ops.registry` knows the file of each."""
