"""The encode stage: scheduled functions to machine code."""
