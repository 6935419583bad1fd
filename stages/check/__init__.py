"""orias-check: the judges."""
