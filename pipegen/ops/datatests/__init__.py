"""Tests of the data, for the section `tests`: a file for each, with its name. `ops/testing/` says what a test is."""
