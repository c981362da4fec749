"""Takes a spec through every phase before TensorFlow, each stage made from the one before, and keeps the state of a run.

`load` gives a `Spec`, `bind` a `BoundSpec` that knows its data, `fit` (in `pipegen.api`, since it reads pixels) a `FittedSpec`, and
`compile_spec` the `CompiledSpec` that a `Pipeline` runs.
"""
