"""PTX interpreter: executes units of the `ptx` level by the PTX manual, on numpy arrays (see docs/judges.md).

It imports only the parser and the IR of this project, so that it can judge the rest.

>>> from stages.interpret.launch import Module
"""
