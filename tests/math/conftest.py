"""Size of the sweeps: ``pytest tests/math --math-size N`` random operands per case (default 1,500; 100,000 for a
thorough run)."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def size(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--math-size", default=1500))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--math-size",
        type=int,
        default=1500,
        help="random operands per case of tests/math (give the folder on the command line)",
    )
