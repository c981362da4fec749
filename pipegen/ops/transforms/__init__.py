"""The steps, one file each; `pipegen.ops.registry` finds them."""
