"""Writes down what a spec is made of (texts, packages, commits, data, functions, versions), and says in words what has moved since."""
