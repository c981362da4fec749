"""The kinds of features: a file for each, perhaps with its form for items, which the registry finds by its name.

A kind defines how a feature is stored, which arguments describe it, what steps do to it, and how it is drawn and written to files. No
other code depends on the name of a kind. To add one, write `ops/kinds/NAME.py` with a subclass of `FeatureKind` and
`tests/ops/kinds/test_NAME.py`; then run `pipegen schema --write`.
"""
