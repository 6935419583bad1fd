"""Launches and expected results of the corpus kernels: the same interface as :mod:`tests.kernels.cases`."""

from __future__ import annotations

from tests.kernels.corpus_arith import ARITH
from tests.kernels.corpus_control import CONTROL
from tests.kernels.model import Buffer, Expected, KernelSpec, Launch, Scalar, check

__all__ = ["CASES", "Buffer", "Expected", "KernelSpec", "Launch", "Scalar", "check"]

CASES: dict[str, KernelSpec] = {
    maker.__name__: KernelSpec(maker.__name__, maker, "corpus") for maker in (*ARITH, *CONTROL)
}
