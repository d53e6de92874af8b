package command

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

	"ramp/protocol/message"
)

// A program whose request is said in flags, without an end, begins within this time.
const (
	beginWithin = 24 * time.Hour
	beginWords  = "a day"
)

// runFlags are what to run and how to buy, as given on the command line.
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
	fs.StringVar(&f.app, "app", "", "an application that the site has installed, in place of a command")
	fs.StringArrayVar(&f.params, "param", nil, "a parameter of the application; may be repeated")
	fs.StringArrayVar(&f.in, "in", nil, "file or directory to bring along, PATH or PATH=NAME; may be repeated")
	fs.StringVar(&f.out, "out", "", "directory to write what the program leaves to; it is made if it is not there")
	fs.StringVar(&f.buy.id, "id", "", "ID of the purchase; one that was given before is gone on with, not bought again (default: a random one)")
	fs.BoolVar(&f.buy.again, "again", false, "buy and run once more, also while the same command is not over")
	fs.BoolVar(&f.buy.approve, "approve", false, "ask before buying, also when the request is met")
}

// arguments takes FILE, or flags in its place, and a command behind '--'.
func (f *runFlags) arguments(c *cobra.Command, args []string) error {
	file, command := runWords(c, args)
	if len(file) > 1 || len(file) == 1 && f.buy.request.said && len(command) == 0 && f.app == "" {
		return fail(exitUsage, "such as "+c.CommandPath()+" --cores 4 --wall 10m --max-price 40 -- ./program", "%q: the command comes after '--'", file[len(file)-1])
	}
	return f.buy.request.fileOr(c, file)
}

// runWords are the words before '--' and those behind it.
func runWords(c *cobra.Command, args []string) (file, command []string) {
	at := c.ArgsLenAtDash()
	if at < 0 {
		return args, nil
	}
	return args[:at], args[at:]
}

// program is what is to run, for a request in these words.
func (f *runFlags) program(command []string, request string) (*message.Program, error) {
	if (f.app == "") == (len(command) == 0) {
		return nil, fail(exitUsage, "-- ./program at the end, or --app NAME", "want a command or an application, and not both")
	}
	p := &message.Program{App: f.app, Command: command}
	for _, s := range f.params {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" || f.app == "" {
			return nil, fail(exitUsage, "", "--param %q: want NAME=VALUE, for an application", s)
		}
		p.Params = append(p.Params, message.Param{Name: name, Value: value})
	}
	var err error
	if p.Inputs, err = inputsOf(f.in); err != nil {
		return nil, err
	}
	p.Key, err = keyOf(*p, request)
	return p, err
}

// keyOf is the same for the same request, program and inputs.
func keyOf(p message.Program, request string) (string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(append(b, 0), request...))
	return hex.EncodeToString(sum[:16]), nil
}

// order is the order that a command line gives: what to buy, and what to run in it.
func (f *runFlags) order(c *cobra.Command, args []string) (buyCall, error) {
	file, command := runWords(c, args)
	text, err := requestText(c, file)
	if err != nil {
		return buyCall{}, err
	}
	request := string(text)
	if len(file) == 0 { // the document that flags make is another one each time
		request = fmt.Sprintf("%q", f.buy.request.words)
		f.buy.request.builder.BeginWithin(beginWithin)
		f.buy.unnamed = filepath.Base(cmp.Or(f.app, strings.Join(command[:min(1, len(command))], "")))
	}
	call, err := ordersOf(text, file, f.buy)(f.buy.firstID())
	if err != nil {
		return buyCall{}, err
	}
	if call.Program, err = f.program(command, request); err != nil {
		return buyCall{}, err
	}
	return call, launchable(call.ID, call.Program)
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
	if err := checkOut(f.out); err != nil {
		return err
	}
	agent, closeAgent, err := openUserServing(c)
	if err != nil {
		return err
	}
	defer closeAgent()
	return buyAndRun(c, agent, call, accepts, f.out)
}
