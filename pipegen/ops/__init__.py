"""The open set: sources and steps, one file each.

A step's file holds, in this order: the class docstring (the user's documentation), the arguments with their
documentation, worked examples, the type rule (`infer`), and the lowering. TensorFlow is `pipegen.lazy.tf`, imported when
lowering first uses it, so that everything else works where it is not installed. To add a step:

1. Write `ops/transforms/NAME.py` with one subclass of a family in `ops/base.py`.
2. Write `tests/ops/transforms/test_NAME.py` with what is special to it, against an independent oracle.
3. Run `pipegen schema --write` to renew the JSON Schema and the table in the README.

Beside `sources/` and `transforms/`, `kinds/` has what features are, `base.py` the contracts, `families/` what the steps of one family
share, `arguments/` the values that arguments take, and `lowering/` functions of tensors that several steps use.

The registry finds the file; the contract tests, the soundness tests and the documentation pick the step up unaided.
"""
