"""`orias-show`: any saved stream as text, DOT or HTML."""
