"""The optimize stage: passes over virtual registers."""
