package launch

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Everybody is the agent of the Account for all buyers without their own.
const Everybody protocol.AgentID = "*"

// Policy says what may run here, and as whom. Without accounts nothing may.
type Policy struct {
	Apps          map[string]App
	Accounts      map[protocol.AgentID]Account
	MaxInput      int64  // bytes of all inputs of a launch; zero: DefaultMaxInput
	MaxOutput     int64  // bytes of all outputs of a job; zero: DefaultMaxOutput
	MemoryPerCore int64  // bytes; zero: not limited
	Closed        string // why nothing may run; empty: it may
}

// Account is the local identity and right of a buyer.
type Account struct {
	User     string   // the local account; empty: the agent's own
	Pool     []string // instead, accounts that each serve one buyer at a time
	Commands bool     // it may run any command, not only applications
}

// App is an application that the site has installed: a command in which {name}
// stands for a parameter, and the allowed values of each parameter.
type App struct {
	Command []string
	Params  map[string]*regexp.Regexp // must match the whole value
	Default map[string]string         // of optional parameters
}

// Bounds of staged files, unless the site sets others.
const (
	DefaultMaxInput  = 1 << 30
	DefaultMaxOutput = 10 << 30
)

var placeholder = regexp.MustCompile(`\{([A-Za-z][A-Za-z0-9_-]*)\}`)

// Validate names the wrong field and the allowed values.
func (c Config) Validate() error {
	if c.Keep < 0 || c.Keep > MaxKeep {
		return fmt.Errorf("keep %s: want 0..%s", c.Keep, MaxKeep)
	}
	return c.Policy.Validate()
}

// Validate names what is wrong with a policy, and what is allowed.
func (p Policy) Validate() error {
	for _, name := range slices.Sorted(maps.Keys(p.Apps)) {
		if err := p.Apps[name].validate(); err != nil {
			return fmt.Errorf("application %s: %w", name, err)
		}
	}
	for _, f := range []struct {
		name  string
		bytes int64
	}{{"inputs", p.MaxInput}, {"outputs", p.MaxOutput}, {"memory per core", p.MemoryPerCore}} {
		if f.bytes < 0 {
			return fmt.Errorf("%s of %d bytes: want 0 or more", f.name, f.bytes)
		}
	}
	return nil
}

func (a App) validate() error {
	if len(a.Command) == 0 || a.Command[0] == "" || placeholder.MatchString(a.Command[0]) {
		return fmt.Errorf("command: want a program, which must not be a parameter, and its arguments")
	}
	used := map[string]bool{}
	for _, word := range a.Command[1:] {
		for _, m := range placeholder.FindAllStringSubmatch(word, -1) {
			used[m[1]] = true
			if a.Params[m[1]] == nil {
				return fmt.Errorf("command: {%s} is not one of its parameters", m[1])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Params)) {
		if !used[name] {
			return fmt.Errorf("parameter %s: the command has no {%s}", name, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Default)) {
		if re := a.Params[name]; re == nil || !whole(re, a.Default[name]) {
			return fmt.Errorf("default of %s: not a parameter, or not an allowed value", name)
		}
	}
	return nil
}

func whole(re *regexp.Regexp, s string) bool {
	at := re.FindStringIndex(s)
	return at != nil && at[0] == 0 && at[1] == len(s)
}

func (p Policy) filled() Policy {
	p.MaxInput = cmp.Or(p.MaxInput, DefaultMaxInput)
	p.MaxOutput = cmp.Or(p.MaxOutput, DefaultMaxOutput)
	return p
}

// Serves says why a buyer's launch would not run here, with CodeProgram; nil: it would,
// as far as is known before the purchase.
func (p Policy) Serves(buyer protocol.AgentID, l message.Intent) *protocol.Reason {
	_, why := p.filled().serves(buyer, l)
	if why != nil {
		why.Code = protocol.CodeProgram
	}
	return why
}

// serves returns the buyer's account, or why its launch does not run.
func (p Policy) serves(buyer protocol.AgentID, l message.Intent) (Account, *protocol.Reason) {
	a, ok := p.Accounts[buyer]
	if !ok {
		a, ok = p.Accounts[Everybody]
	}
	switch {
	case p.Closed != "":
		return a, no(protocol.CodeForbidden, "this site runs no programs: "+p.Closed)
	case !ok && len(p.Accounts) == 0:
		return a, no(protocol.CodeForbidden, "this site runs no programs")
	case !ok:
		return a, no(protocol.CodeForbidden, "this site runs no programs for "+string(buyer))
	case l.Input > p.MaxInput:
		return a, no(protocol.CodeLimit, fmt.Sprintf("inputs of %d bytes, this site takes at most %d", l.Input, p.MaxInput))
	case l.App == "" && !a.Commands:
		return a, no(protocol.CodeForbidden, "this site runs its applications only: "+p.names())
	}
	if _, has := p.Apps[l.App]; l.App != "" && !has {
		return a, no(protocol.CodeForbidden, fmt.Sprintf("no application %q, this site has: %s", l.App, p.names()))
	}
	return a, nil
}

// admit returns the command and the local identity of a buyer's launch, or why it is refused.
func (p Policy) admit(user protocol.AgentID, l message.Launch) (argv []string, a Account, why *protocol.Reason) {
	a, why = p.serves(user, message.Intent{App: l.App, Input: total(l.Inputs)})
	switch {
	case why != nil:
	case l.App != "" && len(l.Command) > 0:
		why = no(protocol.CodeMalformed, "an application and a command: want one of them")
	case l.App != "":
		argv, why = p.application(l)
	case len(l.Command) == 0 || strings.HasPrefix(l.Command[0], "-"):
		why = no(protocol.CodeMalformed, "the command has no program")
	default:
		argv = l.Command
	}
	return argv, a, why
}

func (p Policy) names() string {
	if len(p.Apps) == 0 {
		return "there are none"
	}
	return strings.Join(slices.Sorted(maps.Keys(p.Apps)), ", ")
}

// application inserts the parameters into an application's command. A value becomes part
// of one word, and never adds a word.
func (p Policy) application(l message.Launch) ([]string, *protocol.Reason) {
	app := p.Apps[l.App] // serves has found it
	values := maps.Clone(app.Default)
	if values == nil {
		values = map[string]string{}
	}
	for _, v := range l.Params {
		re := app.Params[v.Name]
		switch {
		case re == nil:
			return nil, no(protocol.CodeForbidden, fmt.Sprintf("application %s has no parameter %s", l.App, v.Name))
		case !whole(re, v.Value):
			return nil, no(protocol.CodeForbidden, fmt.Sprintf("application %s: parameter %s is %q, want it to match %s", l.App, v.Name, protocol.Clip(v.Value), re))
		}
		values[v.Name] = v.Value
	}
	for _, name := range slices.Sorted(maps.Keys(app.Params)) {
		if _, given := values[name]; !given {
			return nil, no(protocol.CodeMalformed, fmt.Sprintf("application %s: parameter %s is missing", l.App, name))
		}
	}
	argv := make([]string, len(app.Command))
	for i, word := range app.Command {
		argv[i] = placeholder.ReplaceAllStringFunc(word, func(s string) string { return values[s[1:len(s)-1]] })
	}
	return argv, nil
}

// total is the size of files together; each is bounded, so it cannot overflow.
func total(files []protocol.StagedFile) int64 {
	var sum int64
	for _, f := range files {
		sum += f.Size
	}
	return sum
}

func no(code protocol.Code, note string) *protocol.Reason {
	return &protocol.Reason{Code: code, Unit: protocol.AllUnits, Note: note}
}
