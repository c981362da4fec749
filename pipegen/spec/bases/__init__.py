"""Finds the base specs that `extends` names: data files of installed packages, and files of git repositories as a lock keeps them."""
