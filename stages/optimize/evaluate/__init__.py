"""What instructions compute, on constants: :func:`stages.optimize.evaluate.table.evaluate`."""
