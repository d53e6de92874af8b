package script

// Clocked reads a time as a shell prints it.
var Clocked = clocked
