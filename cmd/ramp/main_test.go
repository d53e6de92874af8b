package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ramp/cmd/ramp/command"
)

// TestMain makes this binary the program too: under the name ramp it is what
// people run, so that the tests start real processes and build nothing.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ramp": func() { os.Exit(command.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the command line as people meet it; ../../testdata/script has
// one file per subject. Their own commands are in script_test.go.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata/script",
		Cmds:                scriptCommands(),
		Setup:               setUpScript,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
