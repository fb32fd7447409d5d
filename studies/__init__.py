"""Studies of spinseg that are no part of the package: accuracy, the paper's results, speed, and training.

`python -m studies --help` lists them.
"""
