"""orias-diff: two compilations side by side."""
