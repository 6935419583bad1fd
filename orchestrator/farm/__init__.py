"""orias-farm: many PTX files over the machines of a Dask cluster."""
