"""Shared pytest set-up.

Being in the package ``tests``, this file makes pytest put the repository's root on sys.path, whatever the working
directory, so that ``from tests import oracle`` and ``from tests.kernels.cases import CASES`` work.
"""

import os
import sys
from pathlib import Path

# Tests start hundreds of processes, and each would compile every module that it imports: five times the cost.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Processes started by tests find the folders of this checkout, whatever is installed. ORIAS_BIN names the programs of
# another environment, which has to have all it needs (tests/installed.py).
_ROOT = str(Path(__file__).parents[1])
if os.environ.get("ORIAS_BIN"):
    os.environ.pop("PYTHONPATH", None)
elif _ROOT not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
    os.environ["PYTHONPATH"] = os.pathsep.join([_ROOT, *filter(None, [os.environ.get("PYTHONPATH", "")])])
