"""Test kernels: CUDA sources, their PTX, and launches with expected results."""
