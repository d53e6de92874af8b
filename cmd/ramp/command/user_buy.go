package command

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

func newUserQuote() *cobra.Command {
	var o buyFlags
	c := &cobra.Command{
		Use:   "quote [FILE]",
		Short: "Ask what a request would cost and when it would start; buy nothing",
		Long: `Asks what an RFQL document FILE ('-': standard input) would cost and when it would
start, and buys nothing.

` + requestHelp,
		Example: fmt.Sprintf(requestExample, "quote"),
		Args:    o.request.fileOr,
		RunE: func(c *cobra.Command, args []string) error {
			o.quote = true
			return runBuy(c, args, o)
		},
	}
	o.register(c)
	return c
}

func newUserBuy() *cobra.Command {
	var o buyFlags
	c := &cobra.Command{
		Use:   "buy [FILE]",
		Short: "Buy what a request asks for, all of it or nothing",
		Long: `Buys what the RFQL document FILE asks for ('-' reads standard input): the best set
of offers after the rounds of bidding, reserved and paid all or nothing. If nothing
meets the request, the closest set is shown; on a terminal it may be approved, and
otherwise nothing is bought (exit code 3). It is safe to interrupt: what was signed
is carried on by the next command or by the daemon. It is safe to repeat: until its
result was shown, the same command goes on with the same purchase, as does any without
--id while a purchase of the same request is not decided; one ID is bought once, ever.

` + requestHelp,
		Example: fmt.Sprintf(requestExample, "buy"),
		Args:    o.request.fileOr,
		RunE:    func(c *cobra.Command, args []string) error { return runBuy(c, args, o) },
	}
	o.register(c)
	o.registerCounter(c)
	o.registerReplace(c)
	c.Flags().BoolVar(&o.approve, "approve", false, "ask before buying, also when the request is met")
	c.Flags().StringVar(&o.id, "id", "", "ID of the purchase; one that was given before is shown, not bought again (default: a random one)")
	durationVar(c.Flags(), &o.wait, "wait", 0, "try again until it is bought, at most so long")
	c.Flags().BoolVar(&o.again, "again", false, "buy also while a purchase of the same request is not decided")
	return c
}

// buyFlags are how to buy, as given on the command line.
type buyFlags struct {
	request      requestFlags
	rounds       int
	roundLimit   time.Duration
	noEarlyClose bool
	optimize     string
	maxCost      string
	maxWait      time.Duration
	approve      bool
	quote        bool
	id           string
	again        bool
	wait         time.Duration
	mode         string
	noReplace    bool
	unnamed      string // what a request is called that flags say without a name

	acceptCounter string
}

func (o *buyFlags) register(c *cobra.Command) {
	o.request.register(c)
	o.registerHow(c)
}

// registerHow are the flags that say how to buy, and not what.
func (o *buyFlags) registerHow(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&o.rounds, "rounds", protocol.DefaultRounds, "rounds of bidding, 1..100")
	durationVar(f, &o.roundLimit, "round-limit", protocol.DefaultRoundLimit, "longest time of a round, 10ms..1h")
	f.BoolVar(&o.noEarlyClose, "no-early-close", false, "let every round last its limit, as the first RAMP did")
	f.StringVar(&o.optimize, "optimize", "", "cost, time or cost-time (default: what the document says, else cost)")
	f.StringVar(&o.maxCost, "max-cost", "", "most credits for the whole purchase")
	f.StringVar(&o.mode, "mode", "", "when to pay: on-reservation, on-completion or metered (default: what the bank and most sellers offer)")
	durationVar(f, &o.maxWait, "max-wait", 0, "latest start, counted from now or from the document's start")
}

// registerReplace is for what may lose a unit after it was bought.
func (o *buyFlags) registerReplace(c *cobra.Command) {
	c.Flags().BoolVar(&o.noReplace, "no-replace", false, "do not buy again a unit that its site loses before its slot begins")
}

// options checks the flags.
func (o buyFlags) options(doc rfql.Document) (message.Options, error) {
	opt := message.Options{
		Rounds: o.rounds, RoundLimit: o.roundLimit, NoEarlyClose: o.noEarlyClose, MaxWait: o.maxWait,
		QuoteOnly: o.quote, Approve: o.approve, Objective: doc.Objective(), NoReplace: o.noReplace,
	}
	var err error
	switch {
	case o.rounds < 1 || o.rounds > protocol.MaxRounds:
		return opt, fail(exitUsage, "", "--rounds %d: want 1..%d", o.rounds, protocol.MaxRounds)
	case o.roundLimit < 10*time.Millisecond || o.roundLimit > time.Hour:
		return opt, fail(exitUsage, "", "--round-limit %s: want 10ms..1h", o.roundLimit)
	case o.wait < 0 || o.wait > maxTrying:
		return opt, fail(exitUsage, "", "--wait %s: want 0..%s", o.wait, maxTrying)
	case o.maxWait < 0:
		return opt, fail(exitUsage, "", "--max-wait %s: want more than zero", o.maxWait)
	}
	if o.id != "" && !validID(o.id) {
		return opt, fail(exitUsage, "", "--id %q: want 1..%d letters, digits, '.', '_' or '-', not beginning with %q", o.id, maxID, quotePrefix)
	}
	if o.mode != "" {
		if opt.Mode, err = parseMode(o.mode); err != nil {
			return opt, fail(exitUsage, "", "--mode: %w", err)
		}
		if metered := opt.Mode == protocol.ModeMetered; doc.Len() > 0 && metered != doc.Request(0).Metered() {
			return opt, fail(exitUsage, "docs/RFQL.md shows a Contract", "--mode %s: a document is metered if it has contracts, and only then", opt.Mode)
		}
	}
	if o.optimize != "" {
		if opt.Objective, err = protocol.ParseObjective(o.optimize); err != nil {
			return opt, fail(exitUsage, "", "--optimize: %w", err)
		}
	}
	if o.maxCost != "" {
		if opt.MaxCost, err = protocol.ParseCredits(o.maxCost); err != nil {
			return opt, fail(exitUsage, "", "--max-cost: %w", err)
		}
		if opt.MaxCost <= 0 {
			return opt, fail(exitUsage, "", "--max-cost %q: want a positive number of credits", o.maxCost)
		}
	}
	return opt, nil
}

// maxID bounds the ID of a purchase, in bytes.
const maxID = 64

func validID(id string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9._-]+$`).MatchString(id) && len(id) <= maxID && !strings.HasPrefix(id, quotePrefix)
}

// newPurchaseID is globally unique: 128 random bits.
func newPurchaseID(quote bool) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	if quote {
		return quotePrefix + hex.EncodeToString(b[:])
	}
	return "p" + hex.EncodeToString(b[:])
}

func runBuy(c *cobra.Command, args []string, o buyFlags) error {
	text, err := requestText(c, args)
	if err != nil {
		return err
	}
	orders := ordersOf(text, args, o)
	first, err := orders(o.firstID())
	if err != nil {
		return err
	}
	accepts, err := o.consent(first)
	if err != nil {
		return err
	}
	agent, closeAgent, err := openUser(c)
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
	note.close(answered(err) && wasShown(c))
	return err
}

// note notes the order, or finds that an earlier command has given it.
func (o buyFlags) note(c *cobra.Command, agent *caller, text string, first *buyCall) (*pendingBuy, error) {
	dir, err := dirOf(c, "user")
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
	}
	return n, err
}

// answered reports whether a command has shown what became of its order.
func answered(err error) bool {
	var e *exitError
	return err == nil || errors.Is(err, errSilent) || errors.As(err, &e) && (e.code == exitUsage || e.code == exitRefused)
}

func (o buyFlags) buy(c *cobra.Command, agent *caller, first buyCall, orders func(id string) (buyCall, error), accepts consent, note *pendingBuy) error {
	if o.wait > 0 {
		return buyUntil(c, agent, first, orders, time.Now().Add(o.wait))
	}
	p, err := buyCountered(c, agent, first, accepts)
	if err != nil {
		return err
	}
	if p.Settled && !o.quote {
		warnLow(c, agent)
	}
	note.tell(c, p)
	return printResult(c, agent, p, o.quote)
}

// firstID is the ID of the first order.
func (o buyFlags) firstID() string {
	if o.id != "" {
		return o.id
	}
	return newPurchaseID(o.quote)
}

// ordersOf makes orders for what a document asks for, or flags. Each is made from
// the document anew: a start that is now is another one each time.
func ordersOf(text []byte, args []string, o buyFlags) func(id string) (buyCall, error) {
	if len(args) == 0 {
		return o.order
	}
	path := args[0]
	return func(id string) (buyCall, error) {
		b, doc, startNow, err := checkRequest(text, path)
		if err != nil {
			return buyCall{}, err
		}
		call, err := o.call(id, requestName(path, doc), b, doc)
		call.StartNow = startNow
		return call, err
	}
}

// requestText is the document that is named; without one there is none.
func requestText(c *cobra.Command, args []string) ([]byte, error) {
	if len(args) == 0 {
		return nil, nil
	}
	return readInput(c, args[0], protocol.MaxDocument)
}

// order is an order for what the flags ask for.
func (o buyFlags) order(id string) (buyCall, error) {
	doc, err := o.request.document(0)
	if err != nil {
		return buyCall{}, err
	}
	call, err := o.call(id, cmp.Or(doc.Request(0).Name, o.unnamed, "request"), doc.XML(), doc)
	call.Moving = o.request.builder.Moving()
	return call, err
}

func (o buyFlags) call(id, name string, b []byte, doc rfql.Document) (buyCall, error) {
	opt, err := o.options(doc)
	return buyCall{ID: id, Name: name, Document: string(b), Options: opt, Resume: !o.quote && !o.again || o.id != "", Named: o.id != ""}, err
}

// printResult shows what came of an order, and ends with its code.
func printResult(c *cobra.Command, agent *caller, p message.Purchase, quote bool) error {
	if wantsJSON(c) {
		if err := printJSON(stdout(c), asShown(p)); err != nil {
			return err
		}
	} else {
		printPurchase(stdout(c), p)
	}
	if !p.Settled {
		warnClock(c, agent)
	}
	if code := purchaseCode(p, quote); code != exitDone {
		return silent(code)
	}
	return nil
}

// requestName is what a purchase is called: the name in the document, or the
// file's.
func requestName(path string, doc rfql.Document) string {
	if n := doc.Request(0).Name; n != "" && doc.Len() == 1 {
		return n
	}
	if path == "-" {
		return "standard input"
	}
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}
