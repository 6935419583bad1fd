"""Shared pytest set-up.

Being in the package ``tests``, this file makes pytest put the repository's root on sys.path, whatever the working
directory, so that ``from tests import oracle`` and ``from tests.kernels.cases import CASES`` work.
"""
