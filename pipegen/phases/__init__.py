"""The phases of a spec before TensorFlow, each made from the one before, and the state of a run.

`load` makes a `Spec`, `bind` a `BoundSpec` with its data, `fit` (in `pipegen.api`, since it reads pixels) a `FittedSpec`, and
`compile_spec` the `CompiledSpec` that a `Pipeline` runs.
"""
