"""Register allocation: level `ori` (virtual registers) to level `allocated` (physical ones). See docs/regalloc.md."""
