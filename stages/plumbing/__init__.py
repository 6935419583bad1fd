"""What turns a stage into a program: streams, command lines, the pass table, several stages in one process."""
