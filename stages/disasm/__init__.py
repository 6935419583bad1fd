"""orias-disasm: a cubin's machine code as text, as JSON, or as an Ori stream; and text or a stream written back into
cubin."""
