"""The last stage: machine code and metadata to a cubin."""
