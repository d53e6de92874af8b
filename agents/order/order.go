// Package order turns what a user writes, in flags or a job file, into an order: the program
// to run in a purchase, its files, and what it waits for.
//
// It reads the files of the user's machine and asks the user's agent. It prints nothing.
package order

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/stage"
	"ramp/agents/user/sweep/plan"
	"ramp/agents/user/sweeper"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql/compose"
	"ramp/rfql/jobfile"
)

// Run is a program to run, as flags and job files describe it.
type Run struct {
	App      string
	Params   []string // NAME=VALUE
	In       []string // PATH, or PATH=NAME
	Env      []string // NAME=VALUE; the last of a name counts
	Outputs  []string // patterns of the files to fetch
	Commands [][]string
	Script   string // path of the script that the command runs; empty: none
	Array    string
	After    []string // dependencies
	Retry    int
}

// MaxRetry bounds how often a failed program is bought again.
const MaxRetry = 100

// Keys are what a job file may set, besides its own keys.
func Keys() jobfile.Keys {
	var k jobfile.Keys
	for _, w := range compose.Words() {
		k.Unit = append(k.Unit, string(w))
	}
	k.Job = append(k.Job, k.Unit...)
	k.Job = append(k.Job, "accept-counter", "app", "approve", "array", "dependency", "env", "in", "max-cost", "max-wait", "mode",
		"no-early-close", "no-replace", "optimize", "out", "outputs", "param", "retry", "round-limit", "rounds", "wait")
	return k
}

// IsJob reports whether a text is a job file or a script, rather than an RFQL document.
func IsJob(text []byte) bool {
	return !bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), " \t\r\n"), []byte("<"))
}

// Program is the program, and what is uploaded for it, for people.
func (r Run) Program(request string) (p *message.Program, uploads string, err error) {
	switch hint := "-- ./program at the end, 'command' in a job file, or --app NAME"; {
	case r.App == "" && len(r.Commands) == 0:
		return nil, "", exit.Fail(exit.Usage, hint, "no program: give a command or an application")
	case r.App != "" && len(r.Commands) > 0:
		return nil, "", exit.Fail(exit.Usage, hint, "give a command or an application, not both")
	}
	p = &message.Program{App: r.App, Outputs: r.Outputs}
	if err := r.check(); err != nil {
		return nil, "", err
	}
	for _, s := range r.Params {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" || r.App == "" {
			return nil, "", exit.Fail(exit.Usage, "", "--param %q: want NAME=VALUE, for an application", s)
		}
		p.Params = append(p.Params, message.Param{Name: name, Value: value})
	}
	if p.Inputs, err = node.InputsOf(r.In); err != nil {
		return nil, "", err
	}
	if err := r.commands(p); err != nil {
		return nil, "", err
	}
	p.Key, err = keyOf(*p, request)
	return p, uploadWords(p.Inputs), err
}

// check refuses patterns, paths and variables that cannot be meant.
func (r Run) check() error {
	for _, pattern := range r.Outputs {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return exit.Fail(exit.Usage, "such as '*.csv' or results/*", "--outputs %q: want a pattern", pattern)
		}
	}
	for _, in := range r.In {
		if in == "" || in[0] == '=' { // as an unset variable makes it
			return exit.Fail(exit.Usage, "'.' sends the current directory", "--in %q: want a path", in)
		}
	}
	if r.App != "" && len(r.Env) > 0 {
		return exit.Fail(exit.Usage, "--param sets its parameters", "--env: the site sets the environment of its applications")
	}
	if r.Retry < 0 || r.Retry > MaxRetry {
		return exit.Fail(exit.Usage, "", "--retry %d: want 0..%d", r.Retry, MaxRetry)
	}
	return nil
}

// commands sets the commands of a program, and adds the files that they need to its inputs.
func (r Run) commands(p *message.Program) error {
	env, err := environment(r.Env)
	if err != nil {
		return err
	}
	all := make([][]string, len(r.Commands))
	for i, command := range r.Commands {
		word, err := r.bring(p, command)
		if err != nil {
			return err
		}
		all[i] = append([]string{word}, command[1:]...)
		if len(env) == 0 {
			continue
		}
		if strings.Contains(word, "=") {
			return exit.Fail(exit.Usage, "rename it", "--env: the name of the program %q has an '='", word)
		}
		all[i] = append(append([]string{"env"}, env...), all[i]...)
	}
	switch len(all) {
	case 0:
	case 1:
		p.Command = all[0]
	default:
		p.Commands = all
	}
	return nil
}

// bring adds the program of a command to the inputs if it is a file here, and returns its
// name at the site.
func (r Run) bring(p *message.Program, command []string) (string, error) {
	if r.Script != "" {
		return r.bringFile(p, r.Script, filepath.Base(r.Script))
	}
	source, name := needs("", command)
	if source == "" {
		return command[0], nil
	}
	at, err := r.bringFile(p, source, name)
	if source != command[0] {
		at = command[0]
	}
	return at, err
}

// needs is the file that a command runs, below a directory here, and its name at the site. A name
// without '/' and an absolute path mean the site's own programs, which need nothing.
func needs(dir string, command []string) (source, name string) {
	word := command[0]
	if len(command) == 3 && word == "sh" && command[1] == "-c" { // its first word, if that is plain
		first, _, _ := strings.Cut(strings.TrimSpace(command[2]), " ")
		if relative(first) && filepath.IsLocal(first) {
			if info, err := os.Stat(filepath.Join(dir, first)); err == nil && info.Mode().IsRegular() {
				return first, filepath.Clean(first)
			}
		}
		return "", ""
	}
	if !relative(word) {
		return "", ""
	}
	if name = filepath.Clean(word); !filepath.IsLocal(name) {
		name = filepath.Base(name)
	}
	return word, name
}

func relative(word string) bool { return strings.Contains(word, "/") && !filepath.IsAbs(word) }

// bringFile adds a file to the inputs, executable, unless --in brings one of that name.
func (r Run) bringFile(p *message.Program, source, name string) (string, error) {
	for i := range p.Inputs {
		if p.Inputs[i].File.Path == name {
			p.Inputs[i].File.Exec = true
			return "./" + name, nil
		}
	}
	info, err := os.Stat(source)
	if err == nil && info.IsDir() {
		return "", exit.Fail(exit.Usage, "give the path of a program; --in brings whole directories", "%s is a directory, not a program", source)
	}
	if err != nil || !info.Mode().IsRegular() {
		return "", exit.Fail(exit.Usage, "give the path of a file here, or the name of a program that the site has; --in brings other files",
			"%s is not a file here, and nothing else brings it to the site", source)
	}
	abs, err := filepath.Abs(source)
	if err != nil {
		return "", err
	}
	f, err := stage.Describe(abs, name)
	if err != nil {
		return "", exit.Fail(exit.Usage, "", "%w", err)
	}
	f.Exec = true
	p.Inputs = append(p.Inputs, message.RunInput{File: f, Source: abs})
	files := make([]protocol.StagedFile, len(p.Inputs))
	for i, in := range p.Inputs {
		files[i] = in.File
	}
	if err := protocol.CheckTree(files); err != nil {
		return "", exit.Fail(exit.Usage, "--in PATH=NAME gives a file another name", "%s: %w", source, err)
	}
	return "./" + name, nil
}

// reserved begins the names that describe a program's place in a purchase.
const reserved = "RAMP_"

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// environment checks variables. They become words of env(1), which no shell reads.
func environment(list []string) ([]string, error) {
	var env []string
	at := map[string]int{}
	for _, s := range list {
		name, _, ok := strings.Cut(s, "=")
		switch {
		case !ok || !variable.MatchString(name):
			return nil, exit.Fail(exit.Usage, "letters, digits and '_' make a NAME", "--env %q: want NAME=VALUE", protocol.Clip(s))
		case strings.HasPrefix(name, reserved):
			return nil, exit.Fail(exit.Usage, "choose another name", "--env %s: names that begin with %s are set by the site", name, reserved)
		}
		if i, twice := at[name]; twice {
			env[i] = s
			continue
		}
		at[name] = len(env)
		env = append(env, s)
	}
	return env, nil
}

// maxNamed bounds the inputs that are named.
const maxNamed = 3

// uploadWords say what is uploaded: program, data.csv and 4 more files (12.3 MB).
func uploadWords(inputs []message.RunInput) string {
	if len(inputs) == 0 {
		return ""
	}
	var names []string
	var size int64
	for i, in := range inputs {
		if size += in.File.Size; i < maxNamed {
			names = append(names, in.File.Path)
		}
	}
	text := strings.Join(names, ", ")
	if more := len(inputs) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %s", words.Plural(more, "more file"))
	}
	return fmt.Sprintf("%s (%s)", text, sizeWords(size))
}

func sizeWords(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1000*1000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1000*1000*1000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// keyOf identifies a program: it is equal for equal requests, programs and inputs.
func keyOf(p message.Program, request string) (string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(append(b, 0), request...))
	return hex.EncodeToString(sum[:16]), nil
}

// SweepFiles adds to a plan the program that its command runs, if that is a file here, and makes sure
// that all inputs are here. dir is the directory of the plan.
func SweepFiles(p *plan.Plan, dir string) error {
	if len(p.Command) > 0 {
		bringProgram(p, dir)
	}
	for _, in := range p.AllInputs() {
		source, _ := node.SourceOf(sweeper.Below(dir, in.Spec))
		if _, err := os.Stat(source); err != nil {
			name, _, _ := strings.Cut(in.Spec, "=")
			return exit.Fail(exit.Usage, "paths in a plan begin at its directory", "%s: input %s: %w", in.Where, name, errors.Unwrap(err))
		}
	}
	return nil
}

// bringProgram adds the program of a command to the inputs, unless one of them brings it.
func bringProgram(p *plan.Plan, dir string) {
	source, name := needs(dir, p.Command)
	if source == "" {
		return
	}
	for _, in := range p.Inputs {
		from, as, named := strings.Cut(in, "=")
		if !named {
			as = path.Base(from)
		}
		if name == as || strings.HasPrefix(name, as+"/") {
			return
		}
	}
	if source == p.Command[0] {
		p.Command[0] = "./" + name
	}
	p.Bring(filepath.ToSlash(source)+"="+name, "command")
}
