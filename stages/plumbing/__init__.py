"""What makes a stage a program: reading and writing streams, command lines, passes in order, several stages in one
process."""
