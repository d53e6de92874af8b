package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"ramp/agents/porttest"
)

// untilTime bounds a condition of a script; only a fault reaches it.
const untilTime = 4 * time.Minute

// scriptCommands are the commands that scripts have beside the usual ones.
//
//	market SELLER…        make an authority, a bank, a user and sellers; $CA, $BANK_ID, $USER_ID …
//	serve NAME [ARG…]     start the daemon of an agent of the market, or ramp with ARG…,
//	                      and wait until it is ready; $NAME_PID, $NAME_ADDR
//	kill9 NAME            end it as a crash would
//	halt NAME             SIGTERM, and wait; fails unless it ends with 0
//	log NAME REGEXP       the daemon's log has a line
//	exits CODE CMD…       run a command that must end with CODE
//	until [-stdout|-stderr RE] [!] CMD…  run it again and again until it succeeds, or fails
//	json PATH [=VALUE|>VAR]  look up a value of the JSON in stdout: .0.name, .list:n
//	expired NAME          a credential that was good yesterday
//	disk NAME             move a directory to a disk of 100 MB
func scriptCommands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"market": scriptMarket, "serve": scriptServe, "kill9": scriptKill, "halt": scriptHalt, "log": scriptLog,
		"exits": scriptExits, "until": scriptUntil, "json": scriptJSON, "expired": scriptExpired,
		"disk": scriptDisk,
	}
}

// scriptState is what a script has going on.
type scriptState struct {
	market  *market
	daemons map[string]*daemon
}

type scriptKey struct{}

func setUpScript(env *testscript.Env) error {
	s := &scriptState{daemons: map[string]*daemon{}}
	env.Values[scriptKey{}] = s
	env.Setenv("TMPDIR", env.WorkDir)
	repo, err := filepath.Abs("../..") // for files that are no script's own
	if err != nil {
		return err
	}
	env.Setenv("REPO", repo)
	env.Setenv("TZ", "UTC")
	env.Setenv("GORACE", os.Getenv("GORACE")) // as for this process
	env.Setenv("LAN", multicastAddress())
	env.Defer(func() {
		for _, d := range s.daemons {
			d.kill()
		}
		endDaemonsBelow(env.WorkDir)
	})
	return nil
}

// multicastAddress is an IPv4 address of this machine on a network that carries
// multicast, if there is one.
func multicastAddress() string {
	all, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagMulticast == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
				return n.IP.String()
			}
		}
	}
	return ""
}

func stateOf(ts *testscript.TestScript) *scriptState { return ts.Value(scriptKey{}).(*scriptState) }

func variable(name string) string {
	return strings.ToUpper(strings.NewReplacer("-", "_", "/", "_", ".", "_").Replace(name))
}

func scriptMarket(ts *testscript.TestScript, _ bool, args []string) {
	m, err := newMarket(ts.MkAbs("."), nil, args...)
	ts.Check(err)
	stateOf(ts).market = m
	for _, name := range []string{"FREE_PORT", "TAKEN_PORT"} {
		port, err := porttest.Free()
		ts.Check(err)
		ts.Setenv(name, strconv.Itoa(port))
	}
	for name, id := range m.ids {
		ts.Setenv(variable(name)+"_ID", string(id))
	}
}

func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve NAME [ARG…]")
	}
	s, name := stateOf(ts), args[0]
	if len(args) == 1 {
		ts.Check(s.market.serve(name))
		s.daemons[name] = s.market.daemons[name]
	} else {
		d, err := startDaemon(ts.MkAbs(name+".log"), nil, absolute(ts, args[1:])...)
		ts.Check(err)
		s.daemons[name] = d
	}
	d := s.daemons[name]
	ts.Setenv(variable(name)+"_PID", strconv.Itoa(d.cmd.Process.Pid))
	if len(d.ready.Addresses) > 0 {
		ts.Setenv(variable(name)+"_ADDR", d.ready.Addresses[0])
		listen, _, _ := strings.Cut(d.ready.Addresses[0], "/p2p/")
		ts.Setenv(variable(name)+"_LISTEN", listen)
	}
}

// absolute makes the argument after --dir and --config absolute: a daemon does
// not run in the script's directory.
func absolute(ts *testscript.TestScript, args []string) []string {
	args = append([]string(nil), args...)
	for i := 1; i < len(args); i++ {
		if args[i-1] == "--dir" || args[i-1] == "--config" {
			args[i] = ts.MkAbs(args[i])
		}
	}
	return args
}

func theDaemon(ts *testscript.TestScript, args []string, n int) *daemon {
	if len(args) != n {
		ts.Fatalf("want %d arguments", n)
	}
	d := stateOf(ts).daemons[args[0]]
	if d == nil {
		ts.Fatalf("%s does not run", args[0])
	}
	return d
}

func scriptKill(ts *testscript.TestScript, _ bool, args []string) { theDaemon(ts, args, 1).kill() }

func scriptHalt(ts *testscript.TestScript, neg bool, args []string) {
	if err := theDaemon(ts, args, 1).stop(); (err != nil) != neg {
		ts.Fatalf("%s: %v", args[0], err)
	}
}

func scriptLog(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: log NAME REGEXP")
	}
	if found := regexp.MustCompile("(?m)" + args[1]).MatchString(ts.ReadFile(args[0] + ".log")); found == neg {
		ts.Fatalf("log of %s: %q found: %t\n%s", args[0], args[1], found, ts.ReadFile(args[0]+".log"))
	}
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE CMD…")
	}
	got, command := 0, plainCommand(args[1:])
	err := ts.Exec(command[0], command[1:]...)
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		got, err = ended.ExitCode(), nil
	}
	ts.Check(err)
	if args[0] != strconv.Itoa(got) {
		ts.Fatalf("ended with %d, want %s", got, args[0])
	}
}

// plainCommand is a command without the word exec.
func plainCommand(args []string) []string {
	if args[0] == "exec" {
		return args[1:]
	}
	return args
}

func scriptUntil(ts *testscript.TestScript, _ bool, args []string) {
	want, stream := regexp.MustCompile(""), "stdout"
	if len(args) > 2 && (args[0] == "-stdout" || args[0] == "-stderr") {
		want, stream, args = regexp.MustCompile("(?m)"+args[1]), args[0][1:], args[2:]
	}
	fails := args[0] == "!"
	if fails {
		args = args[1:]
	}
	if args = plainCommand(args); strings.HasPrefix(args[0], "-") {
		ts.Fatalf("usage: until [-stdout|-stderr REGEXP] [!] COMMAND")
	}
	ts.Check(until(untilTime, func() (bool, error) {
		err := ts.Exec(args[0], args[1:]...)
		return (err != nil) == fails && want.MatchString(ts.ReadFile(stream)), err
	}))
}

func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: json PATH [=VALUE|>VAR]")
	}
	var v any
	d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	d.UseNumber()
	ts.Check(d.Decode(&v))
	got, err := lookUp(v, args[0])
	if len(args) == 1 {
		if (err == nil) == neg {
			ts.Fatalf("%s: there: %t", args[0], err == nil)
		}
		return
	}
	ts.Check(err)
	if name, ok := strings.CutPrefix(args[1], ">"); ok {
		ts.Setenv(name, got)
	} else if want := strings.TrimPrefix(args[1], "="); (got == want) == neg {
		ts.Fatalf("%s is %s, want %s", args[0], got, want)
	}
}

// lookUp follows a path such as .units.0.cost; a final :n is a length (# begins a comment).
func lookUp(v any, path string) (string, error) {
	path, length := strings.CutSuffix(path, ":n")
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[step]
			if !ok {
				return "", fmt.Errorf("%s: no %q", path, step)
			}
			v = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(x) {
				return "", fmt.Errorf("%s: no %q in a list of %d", path, step, len(x))
			}
			v = x[i]
		default:
			return "", fmt.Errorf("%s: %q of %v", path, step, v)
		}
	}
	if list, ok := v.([]any); ok && length {
		return strconv.Itoa(len(list)), nil
	}
	if m, ok := v.(map[string]any); ok && length {
		return strconv.Itoa(len(m)), nil
	}
	return fmt.Sprint(v), nil
}

func scriptExpired(ts *testscript.TestScript, _ bool, args []string) {
	m := stateOf(ts).market
	ts.Check(os.RemoveAll(filepath.Join(m.path(args[0]), "agent.key")))
	ts.Check(m.credential(args[0], time.Now().Add(-2*time.Hour), time.Hour))
}

func scriptDisk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: disk NAME")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.Rename(dir, dir+".moved"))
	ts.Check(os.Mkdir(dir, 0o755))
	ts.Check(mount(dir))
	ts.Defer(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // a daemon may still have it
	ts.Check(ts.Exec("cp", "-a", dir+".moved/.", dir))
}

// mount makes a disk of 100 MB.
func mount(dir string) error { return unix.Mount("none", dir, "tmpfs", 0, "size=100m") }

func canMount(dir string) bool {
	return mount(dir) == nil && unix.Unmount(dir, 0) == nil
}
