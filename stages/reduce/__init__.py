"""orias-reduce: the smallest PTX that still shows a fault."""
