"""The references against independent implementations: the CUDA sources run by a host compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels import cases, cases_corpus, host_run
from tests.kernels.model import check

ALL = {**cases.CASES, **cases_corpus.CASES}


@pytest.mark.parametrize("name", sorted(ALL))
def test_source_on_host(name: str, tmp_path: Path) -> None:
    reason = host_run.absent()
    if reason:
        pytest.skip(reason)
    spec = ALL[name]
    library = host_run.build(spec, tmp_path)
    for seed in range(2):
        for launch in spec.launches(seed):
            buffers, symbols = host_run.run(library, launch)
            assert check(launch, buffers, symbols) == [], f"seed {seed}: {launch.label}"
