"""The schedule stage: order of instructions, stall counts, scoreboards."""
