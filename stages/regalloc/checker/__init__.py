"""The checker of register allocation. It shares no code with the allocator and uses only its result."""
