"""Random programs through the whole chain, executed, and compared with the PTX interpreter."""
