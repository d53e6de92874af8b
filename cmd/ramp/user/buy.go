// Package user has the commands of a researcher.
package user

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/order"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

func newUserQuote() *cobra.Command {
	var o buyFlags
	c := &cobra.Command{
		Use: "quote [FILE]", Short: "Ask what a request would cost and when it would start; buy nothing", GroupID: "buy",
		Long: `Ask what the RFQL document FILE ('-': standard input) would cost and when it would start, beside
the list prices. Ends with 3 if the offers do not meet the request. Quotes are not recorded.

` + cli.RequestHelp,
		Example: fmt.Sprintf(cli.RequestExample, "quote"),
		Args:    o.request.FileOr,
		RunE: func(c *cobra.Command, args []string) error {
			o.quote = true
			return runBuy(c, args, &o)
		},
	}
	o.register(c)
	return c
}

func newUserBuy() *cobra.Command {
	var o buyFlags
	c := &cobra.Command{
		Use: "buy [FILE]", Short: "Buy everything a request asks for, or nothing", GroupID: "buy",
		Long: `Buy everything that the RFQL document FILE ('-': standard input) asks for, or nothing. After the
rounds of bidding, the best set of offers is reserved and paid as a whole. On a terminal the
command first shows the offers, their start and the total, and asks, unless --yes or --wait is
given. If no set meets the request, the closest one is shown: on a terminal you can approve it;
elsewhere, and with --yes, nothing is bought (exit code 3).

You can interrupt the command: the daemon, or the next command, completes what was signed. You
can repeat it: until its result has been shown, the same command continues the same purchase.
Without --id, so does any command for a request whose purchase is still undecided (--again buys
another). An ID is bought once, ever. If the bank has not decided after 30 s (or --wait), the
command ends with 5, and the daemon or the next command keeps asking.

If others take the cores first, or a seller does not sign in time, the agent bids again, as
ID.bid2, ID.bid3 and so on. With --wait it retries a failed purchase after about 2 s, 4 s, and
so on, up to 5 minutes, as ID.2, ID.3, ...; it gives up at once for lack of funds, because of a
policy, when the request's time is over, or if you decline. If a site loses a unit before its
slot begins, it refunds the unit, and the agent buys it again as ID.again1, ID.again2, ..., at
most 8 times and within --max-cost, but not with --approve.

` + cli.RequestHelp,
		Example: fmt.Sprintf(cli.RequestExample, "buy"),
		Args:    o.request.FileOr,
		RunE:    func(c *cobra.Command, args []string) error { return runBuy(c, args, &o) },
	}
	o.register(c)
	o.registerSpend(c)
	c.Flags().StringVar(&o.id, "id", "", "`ID` of the purchase; reusing an ID shows that purchase instead of buying again (default: random)")
	o.registerWait(c)
	c.Flags().BoolVar(&o.again, "again", false, "buy even if a purchase of the same request is undecided")
	return c
}

type buyFlags struct {
	request      cli.RequestFlags
	rounds       int
	roundLimit   time.Duration
	noEarlyClose bool
	optimize     string
	maxCost      string
	maxWait      time.Duration
	approve, yes bool
	confirm      bool // a person is there to be asked
	quote        bool
	id           string
	again        bool
	wait         time.Duration
	mode         string
	noReplace    bool
	unnamed      string // name of a request whose flags give none

	acceptCounter string
}

func (o *buyFlags) register(c *cobra.Command) {
	o.request.Register(c)
	o.registerHow(c)
}

// registerHow adds the flags that say how to buy, rather than what.
func (o *buyFlags) registerHow(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&o.rounds, "rounds", 0, "`N` rounds of bidding, 1..100 (default: until nobody improves, at most 16)")
	cli.DurationVar(f, &o.roundLimit, "round-limit", protocol.DefaultRoundLimit, "longest a round may take, 10ms..1h")
	f.BoolVar(&o.noEarlyClose, "no-early-close", false, "wait the full --round-limit every round")
	f.StringVar(&o.optimize, "optimize", "", "optimize for `GOAL`: cost, time, or cost-time: the earliest end for at most 5 % above the least cost (default: as the document says, else cost-time)")
	f.StringVar(&o.maxCost, "max-cost", "", "spend at most `C` credits on the whole purchase")
	f.StringVar(&o.mode, "mode", "", "`MODE` of payment: on-reservation, on-completion or metered (default: as configured, else what the bank and most sellers offer)")
	cli.DurationVar(f, &o.maxWait, "max-wait", 0, "start at most this long after now, or after the document's start")
	cli.Optimize(c)
	cli.Choices(c, "mode", string(protocol.ModeOnReservation), string(protocol.ModeOnCompletion), string(protocol.ModeMetered))
}

// registerSpend adds the flags of commands that spend money.
func (o *buyFlags) registerSpend(c *cobra.Command) {
	c.Flags().StringVar(&o.acceptCounter, "accept-counter", "", "metered requests: accept a counter-offer for the same cores and window at up to `C` credits per core-hour; at most three times, as ID.counter1, ...")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "buy what meets the request without asking (the default without a terminal)")
	c.Flags().BoolVar(&o.approve, "approve", false, "always ask before buying; so buy nothing without a terminal, and no lost unit again")
	c.Flags().BoolVar(&o.noReplace, "no-replace", false, "do not buy a unit again if its site loses it before the slot begins")
}

func (o buyFlags) options(doc rfql.Document) (message.Options, error) {
	opt := message.Options{
		Rounds: o.rounds, RoundLimit: o.roundLimit, NoEarlyClose: o.noEarlyClose, MaxWait: o.maxWait,
		QuoteOnly: o.quote, Approve: o.approve, Confirm: o.confirm, Objective: doc.Objective(), NoReplace: o.noReplace,
	}
	var err error
	switch {
	case o.rounds < 0 || o.rounds > protocol.MaxRounds:
		return opt, exit.Fail(exit.Usage, "", "--rounds %d: want 1..%d", o.rounds, protocol.MaxRounds)
	case o.roundLimit < 10*time.Millisecond || o.roundLimit > time.Hour:
		return opt, exit.Fail(exit.Usage, "", "--round-limit %s: want 10ms..1h", o.roundLimit)
	case o.wait < 0 || o.wait > maxTrying:
		return opt, exit.Fail(exit.Usage, "", "--wait %s: want 0..%s", o.wait, maxTrying)
	case o.approve && o.yes:
		return opt, exit.Fail(exit.Usage, "", "--approve and --yes: give one of them")
	case o.maxWait < 0:
		return opt, exit.Fail(exit.Usage, "", "--max-wait %s: want more than zero", o.maxWait)
	}
	if o.id != "" && !control.ValidID(o.id, control.MaxID) {
		return opt, exit.Fail(exit.Usage, "", "--id %q: want 1..%d letters, digits, '.', '_' or '-', not beginning with %q", o.id, control.MaxID, protocol.QuotePrefix)
	}
	if o.mode != "" {
		if opt.Mode, err = config.ParseMode(o.mode); err != nil {
			return opt, exit.Fail(exit.Usage, "", "--mode: %w", err)
		}
		if opt.Mode != protocol.ModeMetered && doc.Len() > 0 && doc.Request(0).Metered() {
			return opt, exit.Fail(exit.Usage, "leave --mode out, or remove the contracts", "--mode %s: this document has contracts, so it is %s", opt.Mode, protocol.ModeMetered)
		}
	}
	if o.optimize != "" {
		if opt.Objective, err = protocol.ParseObjective(o.optimize); err != nil {
			return opt, exit.Fail(exit.Usage, "", "--optimize: %w", err)
		}
	}
	if o.maxCost != "" {
		opt.MaxCost, err = cli.AmountOf("--max-cost", o.maxCost)
	}
	return opt, err
}

func runBuy(c *cobra.Command, args []string, o *buyFlags) error {
	text, err := requestText(c, args)
	if err != nil {
		return err
	}
	if len(args) == 1 && order.IsJob(text) {
		if _, err := o.request.JobFile(c, newUserRun().Flags(), args[0], text); err != nil {
			return err
		}
		args = nil
	}
	o.confirm = cli.CanAsk(c) && o.wait == 0 && !o.yes && !o.quote
	orders := ordersOf(text, args, *o)
	first, err := orders(o.firstID())
	if err != nil {
		return err
	}
	accepts, err := o.consent(first)
	if err != nil {
		return err
	}
	agent, closeAgent, err := cli.OpenUser(c)
	if err != nil {
		return err
	}
	defer closeAgent()
	note := &pendingBuy{}
	if o.notes() {
		if note, err = o.note(c, agent, string(text), &first); err != nil {
			return err
		}
	}
	err = o.buy(c, agent, first, orders, accepts, note)
	note.close(answered(err) && cli.WasShown(c))
	return err
}

// note writes a note of the order, or finds that of an earlier command.
func (o buyFlags) note(c *cobra.Command, agent *control.Client, text string, first *control.BuyCall) (*pendingBuy, error) {
	dir, err := cli.DirOf(c, "user")
	if err != nil {
		return nil, err
	}
	n, err := noteBuy(dir, o.noted(text), first.ID)
	if err != nil {
		return nil, err
	}
	if n.file != nil && o.wait == 0 && o.acceptCounter == "" { // with those, attempts after the first count
		n.id, err = n.resume(c.Context(), agent, first.ID)
	}
	if first.ID = n.id; n.old {
		first.Resume = true
		cli.ProgressOf(c).Say("resuming " + n.id + ", from the same command (--again buys another)")
	}
	return n, err
}

// answered reports whether a command that ended with err has shown the outcome of its order.
func answered(err error) bool {
	var e *exit.Error
	return err == nil || errors.Is(err, exit.ErrSilent) || errors.As(err, &e) && (e.Code == exit.Usage || e.Code == exit.Refused)
}

func (o buyFlags) buy(c *cobra.Command, agent *control.Client, first control.BuyCall, orders func(id string) (control.BuyCall, error), accepts consent, note *pendingBuy) error {
	p, err := o.purchase(c, agent, first, orders, accepts)
	if err != nil {
		return err
	}
	if p.Settled && !o.quote {
		warnLow(c, agent)
	}
	note.mention(c, p)
	return printResult(c, agent, p, o.quote)
}

// purchase buys, with --wait again and again.
func (o buyFlags) purchase(c *cobra.Command, agent *control.Client, first control.BuyCall, orders func(id string) (control.BuyCall, error), accepts consent) (message.Purchase, error) {
	if o.wait > 0 {
		return buyUntil(c, agent, first, orders, time.Now().Add(o.wait))
	}
	return buyCountered(c, agent, first, accepts)
}

// registerWait adds the flag for trying again.
func (o *buyFlags) registerWait(c *cobra.Command) {
	cli.DurationVar(c.Flags(), &o.wait, "wait", 0, "keep retrying for this long, at most 720h")
}

func (o buyFlags) firstID() string {
	if o.id != "" {
		return o.id
	}
	return control.NewPurchaseID(o.quote)
}

// ordersOf makes orders from a document or from flags. It reads the document anew for each, as
// a start "now" differs each time.
func ordersOf(text []byte, args []string, o buyFlags) func(id string) (control.BuyCall, error) {
	if len(args) == 0 {
		return o.order
	}
	path := args[0]
	return func(id string) (control.BuyCall, error) {
		b, doc, startNow, err := order.Document(text, path)
		if err != nil {
			return control.BuyCall{}, err
		}
		call, err := o.call(id, requestName(path, doc), b, doc)
		call.StartNow = startNow
		return call, err
	}
}

// requestText is the document that the arguments name, or nil. It warns of
// elements that are ignored, such as misspelt ones.
func requestText(c *cobra.Command, args []string) ([]byte, error) {
	if len(args) == 0 {
		return nil, nil
	}
	b, err := words.ReadInput(c.Context(), c.InOrStdin(), args[0], protocol.MaxDocument)
	if err == nil && !order.IsJob(b) {
		_, notices, _ := rfql.Read(b) // its errors come later
		for _, f := range notices.Of(rfql.Notice) {
			fmt.Fprintln(cli.Stderr(c), "warning: "+f.In(args[0]))
		}
	}
	return b, err
}

func (o buyFlags) order(id string) (control.BuyCall, error) {
	doc, err := o.request.Document(0)
	if err != nil {
		return control.BuyCall{}, err
	}
	call, err := o.call(id, cmp.Or(doc.Request(0).Name, o.unnamed, "request"), doc.XML(), doc)
	call.Moving = o.request.Moving()
	return call, err
}

func (o buyFlags) call(id, name string, b []byte, doc rfql.Document) (control.BuyCall, error) {
	if o.mode == string(protocol.ModeMetered) && doc.Priced() { // else the agent does so when it knows the list prices
		doc = doc.WithContracts()
		b = doc.XML()
	}
	opt, err := o.options(doc)
	return control.BuyCall{ID: id, Name: name, Document: string(b), Options: opt, Resume: !o.quote && !o.again || o.id != "", Named: o.id != "",
		Session: control.Session(), Command: control.CommandKey()}, err
}

func showPurchase(c *cobra.Command, agent *control.Client, p message.Purchase) error {
	return cli.Show(c, cli.AsShown(p), func(w io.Writer) { cli.PrintPurchase(w, cli.Shortened(agent, p)) })
}

// printResult prints the outcome of an order, and ends with its code.
func printResult(c *cobra.Command, agent *control.Client, p message.Purchase, quote bool) error {
	if err := showPurchase(c, agent, p); err != nil {
		return err
	}
	if !p.Settled {
		cli.WarnClock(c, agent)
	}
	if code := cli.PurchaseCode(p, quote); code != exit.Done {
		e := &exit.Error{Code: code, Err: exit.ErrSilent}
		if p.Void == protocol.CodeFunds {
			e.InRun = exit.RunFunds
		}
		return e
	}
	return nil
}

// requestName is the name of a purchase: that in the document, or the file's.
func requestName(path string, doc rfql.Document) string {
	if n := doc.Request(0).Name; n != "" && doc.Len() == 1 {
		return n
	}
	if path == "-" {
		return "standard input"
	}
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}
