"""Ori IR: model, wire format, text form, verifier, instruction-set spec."""
