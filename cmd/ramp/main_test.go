package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ramp/cmd/ramp/command"
)

// TestMain makes this binary the program too: under the name ramp it is what
// people run, so that the tests start real processes and build nothing.
func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){
		"ramp":         func() { os.Exit(command.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"unprivileged": unprivileged, "failing-sync": failingSync,
	})
}

// tests are those of this package. Daemons that their commands have started end with them.
type tests struct{ *testing.M }

func (t tests) Run() int {
	flag.Parse()
	if given := flag.Lookup("test.parallel"); given.Value.String() == given.DefValue { // they wait for daemons more than they compute
		_ = given.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))) // a number
	}
	machine.start()
	defer endDaemons(func(program string, _ []string) bool {
		path, err := exec.LookPath("ramp")
		return err == nil && program == path
	})
	return t.M.Run()
}

// TestScripts runs the command line as people meet it; ../../testdata/script has
// one file per subject. Their own commands are in script_test.go.
func TestScripts(t *testing.T) {
	t.Parallel()
	playAll(t, "../../testdata/script", &machine, testscript.Params{
		Cmds:  scriptCommands(),
		Setup: setUpScript,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "multicast": // a network of this machine carries it; its address is $LAN
				return multicastAddress() != "", nil
			case "mounts": // small disks can be made, by root where that is allowed
				return canMount(t.TempDir()), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// endsEarly is testscript's own "stop", which ends a script as passed: whatever
// comes behind it is never tried. A daemon is ended by "halt", and "skip" says why.
var endsEarly = regexp.MustCompile(`(?m)^\s*(\[[^\]]*\]\s*)*!?\s*stop\b.*$`)

func TestEveryScriptIsPlayedToItsEnd(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../testdata/script/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no scripts: ", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		script, _, _ := strings.Cut(string(text), "\n-- ") // its files follow
		for _, line := range endsEarly.FindAllString(script, -1) {
			t.Errorf("%s: %q ends the script as passed; \"halt\" ends a daemon", filepath.Base(path), line)
		}
	}
}
