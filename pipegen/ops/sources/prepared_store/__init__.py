"""The layout of stores of `pipegen prepare`, and readers of them."""
