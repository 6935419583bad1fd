"""The `lower` stage: PTX instructions become SASS instructions over virtual registers (level `ptx` -> level `ori`)."""
