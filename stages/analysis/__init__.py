"""What several stages ask about a function: dependences, divergence, register limits, calling convention. It imports no
stage."""
