"""Tests of the data, for the section `tests` of a spec; `ops/testing/` defines what a test is."""
