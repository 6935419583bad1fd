"""Tests of the optimize stage."""
