"""The checker of register allocation, beside the allocator and apart from it: it takes nothing of the allocator's but
its result."""
