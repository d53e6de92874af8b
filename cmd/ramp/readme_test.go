package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"ramp/agents/queue/local"
)

// notPlayed are the blocks that the tests leave out, by a word in them, and why.
var notPlayed = map[string]string{
	"make demo":  "builds the program: TestScripts has the demonstration",
	"ramp sim ":  "takes minutes: TestScripts has it smaller",
	"openssl cm": "played where openssl is installed",
}

// pageTime bounds all commands of a page; only a fault reaches it.
const pageTime = 15 * time.Minute

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
	out := playPage(t, script(blocks))
	for _, want := range []string{`Joined demo as `, `(?m)^request \(p[0-9a-f]+\): settled$`, `would have made|offers [0-9.]+ per core-hour`, `health +good`, `stopped [0-9]+ processes`, `sum of CPU: 0`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// playPage plays the commands of a page in a new directory, in which the program is bin/ramp,
// and returns what they print. After a stall of the machine they are played again.
func playPage(t *testing.T, script string) (out string) {
	t.Helper()
	one := playAgain(&machine, func(one testscript.T) {
		var err error
		if out, err = playShell(t, tolerant(script)); err != nil {
			one.Fatal(fmt.Sprintf("%v\n%s\n-- played (docs_test.go says how a page prepares a block, or why one is not played):\n%s", err, out, script))
		}
	})
	if one.failed {
		t.Fatal(one.log.String())
	}
	t.Log(one.log.String())
	return out
}

func playShell(t *testing.T, script string) (string, error) {
	dir, err := os.MkdirTemp("", "ramp-docs-") // short: sockets are in it
	if err != nil {
		return "", err
	}
	t.Cleanup(func() { endDaemonsBelow(dir); _ = os.RemoveAll(dir) })
	program, err := exec.LookPath("ramp")
	err = errors.Join(err, os.Mkdir(filepath.Join(dir, "bin"), 0o700), os.Symlink(program, filepath.Join(dir, "bin", "ramp")))
	for _, name := range []string{"testdata", "rfql"} {
		at, errAbs := filepath.Abs("../../" + name)
		err = errors.Join(err, errAbs, os.Symlink(at, filepath.Join(dir, name)))
	}
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), pageTime)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", script)
	c.Dir, c.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	all := func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.Cancel, c.WaitDelay = all, leaveTime // daemons that a failed script leaves have its output too
	out, err := c.CombinedOutput()
	_ = all() // there may be none
	if err != nil {
		_ = exec.Command(program, "demo", "--stop", "--dir", filepath.Join(dir, "market")).Run() // there may be none
	}
	return string(out), err
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

var initSite = regexp.MustCompile(`(?m)^.* --programs as-user:.* --dir (\S+).*$`)

// tolerant is a page for this machine: if it cannot contain programs, sites accept that, which they refuse else.
func tolerant(script string) string {
	if _, lacks := (local.Containment{}).Try(); len(lacks) == 0 || lacks[0].Protection != local.Namespaces {
		return script
	}
	return initSite.ReplaceAllString(script, "$0\nsed -i '/^    accept:/d; s/^    accounts:/    accept: [namespaces, seccomp, cgroup, uids]\\n&/' $1/config.yaml")
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
