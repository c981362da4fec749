"""Holds the kinds of features: one file each, which the registry finds by its name.

A kind says how a feature is stored and which arguments describe it, what steps do to it, and how it is shown and written to files.
Nothing else asks for a kind by its name. To add one, write `ops/kinds/NAME.py` with one subclass of `FeatureKind` and
`tests/ops/kinds/test_NAME.py`; then run `pipegen schema --write`.
"""
