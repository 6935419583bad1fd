"""orias for programs in Python: :mod:`orias.stage`, for stages and passes of one's own."""
