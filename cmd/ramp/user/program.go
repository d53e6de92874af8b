package user

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

// A program whose request comes from flags, without an end, begins within this time.
const (
	beginWithin = 24 * time.Hour
	beginWords  = "a day"
)

// runFlags are the flags of a program to run and of its purchase.
type runFlags struct {
	buy    buyFlags
	app    string
	params []string
	in     []string
	out    string
}

func (f *runFlags) register(c *cobra.Command) {
	f.buy.register(c)
	f.buy.registerCounter(c)
	f.buy.registerReplace(c)
	fs := c.Flags()
	fs.StringVar(&f.app, "app", "", "run application `NAME`, installed at the site, instead of a command")
	fs.StringArrayVar(&f.params, "param", nil, "parameter `NAME=VALUE` of the application; repeatable")
	fs.StringArrayVar(&f.in, "in", nil, "send the file or directory `PATH`, or PATH=NAME to rename it; repeatable")
	fs.StringVar(&f.out, "out", "", "fetch the files that the program leaves to `DIR`, created if missing")
	fs.StringVar(&f.buy.id, "id", "", "`ID` of the purchase; reusing an ID resumes that job (default: random)")
	fs.BoolVar(&f.buy.again, "again", false, "buy and run once more even if the same command is unfinished")
	fs.BoolVar(&f.buy.approve, "approve", false, "ask before buying even if the request is met")
}

// arguments accepts FILE, or flags instead, and a command after '--'.
func (f *runFlags) arguments(c *cobra.Command, args []string) error {
	file, command := runWords(c, args)
	if len(file) > 1 || len(file) == 1 && f.buy.request.Given && len(command) == 0 && f.app == "" {
		return exit.Fail(exit.Usage, "such as "+c.CommandPath()+" --cores 4 --wall 10m --max-price 40 -- ./program", "%q: the command comes after '--'", file[len(file)-1])
	}
	return f.buy.request.FileOr(c, file)
}

// runWords are the words before '--' and those after it.
func runWords(c *cobra.Command, args []string) (file, command []string) {
	at := c.ArgsLenAtDash()
	if at < 0 {
		return args, nil
	}
	return args[:at], args[at:]
}

// program is the program to run for a request.
func (f *runFlags) program(command []string, request string) (*message.Program, error) {
	if (f.app == "") == (len(command) == 0) {
		return nil, exit.Fail(exit.Usage, "-- ./program at the end, or --app NAME", "give a command or an application, and not both")
	}
	p := &message.Program{App: f.app, Command: command}
	for _, s := range f.params {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" || f.app == "" {
			return nil, exit.Fail(exit.Usage, "", "--param %q: want NAME=VALUE, for an application", s)
		}
		p.Params = append(p.Params, message.Param{Name: name, Value: value})
	}
	var err error
	if p.Inputs, err = node.InputsOf(f.in); err != nil {
		return nil, err
	}
	p.Key, err = keyOf(*p, request)
	return p, err
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

// order makes an order from the command line: what to buy, and what to run in it.
func (f *runFlags) order(c *cobra.Command, args []string) (control.BuyCall, error) {
	file, command := runWords(c, args)
	text, err := requestText(c, file)
	if err != nil {
		return control.BuyCall{}, err
	}
	request := string(text)
	if len(file) == 0 { // flags make a different document each time: compare them instead
		request = fmt.Sprintf("%q", f.buy.request.Words)
		f.buy.request.Builder.BeginWithin(beginWithin)
		f.buy.unnamed = filepath.Base(cmp.Or(f.app, strings.Join(command[:min(1, len(command))], "")))
	}
	call, err := ordersOf(text, file, f.buy)(f.buy.firstID())
	if err != nil {
		return control.BuyCall{}, err
	}
	if call.Program, err = f.program(command, request); err != nil {
		return control.BuyCall{}, err
	}
	return call, node.Launchable(call.ID, call.Program)
}

func runRun(c *cobra.Command, args []string, f runFlags) error {
	call, err := f.order(c, args)
	if err != nil {
		return err
	}
	accepts, err := f.buy.consent(call)
	if err != nil {
		return err
	}
	if err := node.CheckOut(f.out); err != nil {
		return err
	}
	agent, closeAgent, err := cli.OpenUserServing(c)
	if err != nil {
		return err
	}
	defer closeAgent()
	return buyAndRun(c, agent, call, accepts, f.out)
}
