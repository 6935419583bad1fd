"""Size of the sweeps: ``pytest tests/math --math-size N`` random operands per case (default 4,000; 100,000 for a
thorough run)."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def size(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--math-size", default=4000))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--math-size",
        type=int,
        default=4000,
        help="random operands per case of tests/math (give the folder on the command line)",
    )
