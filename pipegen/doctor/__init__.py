"""Examines a machine and its installation: each check is a file in `checks/` that gives lines, each with a fact, a verdict and a remedy.

`machine.py` reads `/proc`, `/sys` and control groups below a root that tests make up, `asking.py` asks TensorFlow in another process
(`asked.py`), `storage.py` reads files with the page cache dropped, and `needs.py` says what a spec asks of all that.
"""
