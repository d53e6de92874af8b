// Package command wires the agents to the machine they run on: one file per
// subcommand, and the few pieces that they share (configuration, node, control
// socket, output). It decides nothing that a role could decide.
package command
