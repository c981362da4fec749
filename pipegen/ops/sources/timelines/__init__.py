"""Rows of time series, and the windows that are cut from them."""
