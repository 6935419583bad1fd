"""Functions, calls, arguments and results."""
