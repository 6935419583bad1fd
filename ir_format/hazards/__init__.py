"""Hazard data: least distances between instructions and the use of scoreboards, per SM, as readable tables with the
provenance of each cell."""

from __future__ import annotations

from ir_format.hazards.load import Cell
from ir_format.hazards.model import Access, Hazards, cell_name, file_of, hazards

__all__ = ["Access", "Cell", "Hazards", "cell_name", "file_of", "hazards"]
