"""SSA form: construction, what is known of it, destruction."""
