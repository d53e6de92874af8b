package launch

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Everybody as an agent of an Account is each buyer that has none of its own.
const Everybody protocol.AgentID = "*"

// Policy is what may run here, and as whom. Without any account nothing does.
type Policy struct {
	Apps          map[string]App
	Accounts      map[protocol.AgentID]Account
	MaxInput      int64 // bytes of all inputs of a launch; zero: DefaultMaxInput
	MaxOutput     int64 // bytes of all that a job leaves; zero: DefaultMaxOutput
	MemoryPerCore int64 // bytes; zero: not limited
}

// Account is what a buyer is here.
type Account struct {
	User     string // the local account; empty: the agent's own
	Commands bool   // it may run any command, not only applications
}

// App is an application that the site has installed: a command in which {name}
// stands for a parameter, and what each parameter may be.
type App struct {
	Command []string
	Params  map[string]*regexp.Regexp // the whole of a value has to match
	Default map[string]string         // of parameters that need not be given
}

// Bounds of what is staged, unless the site says otherwise.
const (
	DefaultMaxInput  = 1 << 30
	DefaultMaxOutput = 10 << 30
)

var placeholder = regexp.MustCompile(`\{([A-Za-z][A-Za-z0-9_-]*)\}`)

// Validate names the field that is wrong and what is allowed.
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
	if p.MaxInput < 0 || p.MaxOutput < 0 || p.MemoryPerCore < 0 {
		return fmt.Errorf("bounds of input, output and memory: want 0 or more")
	}
	return nil
}

func (a App) validate() error {
	if len(a.Command) == 0 || a.Command[0] == "" || placeholder.MatchString(a.Command[0]) {
		return fmt.Errorf("command: want a program, which is no parameter, and its arguments")
	}
	used := map[string]bool{}
	for _, word := range a.Command[1:] {
		for _, m := range placeholder.FindAllStringSubmatch(word, -1) {
			used[m[1]] = true
			if a.Params[m[1]] == nil {
				return fmt.Errorf("command: {%s} is no parameter of it", m[1])
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
			return fmt.Errorf("default of %s: it is no parameter, or does not match", name)
		}
	}
	return nil
}

func whole(re *regexp.Regexp, s string) bool {
	at := re.FindStringIndex(s)
	return at != nil && at[0] == 0 && at[1] == len(s)
}

// filled is a policy with its defaults.
func (p Policy) filled() Policy {
	if p.MaxInput == 0 {
		p.MaxInput = DefaultMaxInput
	}
	if p.MaxOutput == 0 {
		p.MaxOutput = DefaultMaxOutput
	}
	return p
}

// Serves says whether a buyer's launch would run here, as far as can be said before
// it is bought; if not, why, with CodeProgram.
func (p Policy) Serves(buyer protocol.AgentID, l message.Intent) *protocol.Reason {
	_, why := p.filled().serves(buyer, l)
	if why != nil {
		why.Code = protocol.CodeProgram
	}
	return why
}

// serves is who the buyer is here, or why what it means to launch does not run.
func (p Policy) serves(buyer protocol.AgentID, l message.Intent) (Account, *protocol.Reason) {
	a, ok := p.Accounts[buyer]
	if !ok {
		a, ok = p.Accounts[Everybody]
	}
	switch {
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

// admit says what a buyer's launch runs here, and as whom; or why not.
func (p Policy) admit(user protocol.AgentID, l message.Launch) (argv []string, account string, why *protocol.Reason) {
	a, why := p.serves(user, message.Intent{App: l.App, Input: total(l.Inputs)})
	switch {
	case why != nil:
	case l.App != "" && len(l.Command) > 0:
		why = no(protocol.CodeMalformed, "an application and a command: want one of them")
	case l.App != "":
		argv, why = p.application(l)
	case len(l.Command) == 0 || strings.HasPrefix(l.Command[0], "-"):
		why = no(protocol.CodeMalformed, "a command without a program")
	default:
		argv = l.Command
	}
	return argv, a.User, why
}

// names are the applications, for people.
func (p Policy) names() string {
	if len(p.Apps) == 0 {
		return "there are none"
	}
	return strings.Join(slices.Sorted(maps.Keys(p.Apps)), ", ")
}

// application puts the parameters into an application's command. A value is put
// into a word of it, never between words, so that it can only be what it is.
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
			return nil, no(protocol.CodeForbidden, fmt.Sprintf("application %s: parameter %s is %q, want it to match %s", l.App, v.Name, clip(v.Value), re))
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

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
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
