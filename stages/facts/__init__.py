"""What the project knows about an SM, as data for programs in any language: ``orias-facts``."""
