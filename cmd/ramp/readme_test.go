package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// notPlayed are the blocks that the tests leave out, by a word in them, and why.
var notPlayed = map[string]string{
	"make demo":  "builds the program: TestScripts has the demonstration",
	"ramp sim ":  "takes minutes: TestScripts has it smaller",
	"openssl cm": "played where openssl is installed",
}

// readmeTime bounds all of README's commands; only a fault reaches it.
const readmeTime = 5 * time.Minute

// The commands of README are played exactly as they are printed, one block after
// the other, in a new directory.
func TestTheCommandsOfTheReadmeWorkAsPrinted(t *testing.T) {
	if testing.Short() {
		t.Skip("starts two whole markets")
	}
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := commandBlocks(string(text))
	if len(blocks) < 8 {
		t.Fatalf("%d blocks of commands: README is not read rightly", len(blocks))
	}
	dir, program := programDirectory(t)
	ctx, cancel := context.WithTimeout(context.Background(), readmeTime)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", script(blocks))
	c.Dir = dir
	c.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	out, err := c.CombinedOutput()
	if err != nil {
		_ = exec.Command(program, "demo", "--stop", "--dir", filepath.Join(dir, "market")).Run() // it may have been stopped
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{`Joined demo as `, `(?m)^request \(p[0-9a-f]+\): settled$`, `would have made|offers [0-9.]+ per core-hour`, `health +good`, `stopped [0-9]+ processes`, `sum of CPU: 0`} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// programDirectory is an empty directory in which the program is bin/ramp.
func programDirectory(t *testing.T) (dir, program string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ramp-docs-") // short: sockets are in it
	must(t, err)
	t.Cleanup(func() { endDaemonsBelow(dir); _ = os.RemoveAll(dir) })
	program, err = exec.LookPath("ramp")
	must(t, err)
	must(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	must(t, os.Symlink(program, filepath.Join(dir, "bin", "ramp")))
	return dir, program
}

// commandBlocks are the blocks that begin with a command, but for those that are
// not played.
func commandBlocks(text string) []string {
	var out []string
	for _, m := range regexp.MustCompile("(?ms)^```\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		if regexp.MustCompile(`^(bin/ramp|cat >|cd |make )`).MatchString(m[1]) && played(m[1]) {
			out = append(out, m[1])
		}
	}
	return out
}

func played(block string) bool {
	for word := range notPlayed {
		_, err := exec.LookPath("openssl")
		if strings.Contains(block, word) && (word != "openssl cm" || err != nil) {
			return false
		}
	}
	return true
}

// script plays blocks in one shell.
func script(blocks []string) string {
	var b strings.Builder
	b.WriteString(scriptHead)
	for _, block := range blocks {
		for line := range strings.Lines(block) {
			b.WriteString(paced(line))
		}
	}
	return b.String()
}

// scriptHead ends a shell at the first command that fails, and with it its daemons.
const scriptHead = "set -e -o pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"

// paced is a line of a script. A person does not type as fast as a shell reads:
// after a daemon was started, the next command is given once it answers.
func paced(line string) string {
	m := regexp.MustCompile(`serve .*--dir (\S+) .*&$`).FindStringSubmatch(strings.TrimSpace(line))
	if m == nil {
		return line
	}
	return line + "until { ramp status --dir " + m[1] + " || true; } | grep -q -e 'health *good' -e 'in recovery'; do read -r -t 0.1 < <(:) || true; done\n"
}
