"""orias-bisect: which stage, pass and rewrite makes a cubin wrong."""
