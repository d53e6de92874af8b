// Command ramp is the market for computing time: user, resource and bank agents,
// and the tools around them.
package main

import (
	"os"

	"ramp/cmd/ramp/command"
)

func main() { os.Exit(command.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
