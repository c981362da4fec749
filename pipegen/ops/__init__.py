"""The open set of sources and steps.

A step's class has, in this order: the docstring (the user's documentation), the arguments with their documentation, worked examples, the
type rule (`infer`), and the lowering. TensorFlow is `pipegen.lazy.tf`, imported when lowering first uses it, so that everything else
works without it. To add a step:

1. Write `ops/transforms/NAME.py` with one subclass of a family in `ops/step_bases.py`.
2. Write `tests/ops/transforms/test_NAME.py` with tests of its own, against an independent oracle.
3. Run `pipegen schema --write` and `python -m docs.generated` to renew the JSON Schema and the reference.

Beside `sources/` and `transforms/`, `kinds/` has the kinds of features, `step_bases.py` the contracts, `families/` the code that steps of a
family share, `arguments/` the values of arguments, and `lowering/` functions of tensors that several steps use.

The registry finds the step by its table; the contract tests, the soundness tests and the documentation include it automatically.
"""
