package command

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
		Use:   "quote FILE",
		Short: "Ask what a request would cost and when it would start; buy nothing",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.quote = true
			return runBuy(c, args[0], o)
		},
	}
	o.register(c)
	return c
}

func newUserBuy() *cobra.Command {
	var o buyFlags
	c := &cobra.Command{
		Use:   "buy FILE",
		Short: "Buy what a request asks for, all of it or nothing",
		Long: `Buys what the RFQL document FILE asks for ('-' reads standard input): the best set
of offers after the rounds of bidding, reserved and paid all or nothing. If nothing
meets the request, the closest set is shown; on a terminal it may be approved, and
otherwise nothing is bought (exit code 3). It is safe to interrupt: what was signed
is carried on by the next command or by the daemon.

` + exitHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return runBuy(c, args[0], o) },
	}
	o.register(c)
	c.Flags().BoolVar(&o.approve, "approve", false, "ask before buying, also when the request is met")
	return c
}

// buyFlags are how to buy, as given on the command line.
type buyFlags struct {
	rounds       int
	roundLimit   time.Duration
	noEarlyClose bool
	optimize     string
	maxCost      string
	maxWait      time.Duration
	approve      bool
	quote        bool
}

func (o *buyFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&o.rounds, "rounds", protocol.DefaultRounds, "rounds of bidding, 1..100")
	f.DurationVar(&o.roundLimit, "round-limit", protocol.DefaultRoundLimit, "longest time of a round")
	f.BoolVar(&o.noEarlyClose, "no-early-close", false, "let every round last its limit, as the first RAMP did")
	f.StringVar(&o.optimize, "optimize", "", "cost, time or cost-time (default: what the document says, else cost)")
	f.StringVar(&o.maxCost, "max-cost", "", "most credits for the whole purchase")
	f.DurationVar(&o.maxWait, "max-wait", 0, "latest start, counted from now or from the document's start")
}

// options checks the flags.
func (o buyFlags) options(doc rfql.Document) (message.Options, error) {
	opt := message.Options{
		Rounds: o.rounds, RoundLimit: o.roundLimit, NoEarlyClose: o.noEarlyClose, MaxWait: o.maxWait,
		QuoteOnly: o.quote, Approve: o.approve, Objective: doc.Objective(),
	}
	var err error
	switch {
	case o.rounds < 1 || o.rounds > 100:
		return opt, fail(exitUsage, "", "--rounds %d: want 1..100", o.rounds)
	case o.roundLimit < 10*time.Millisecond || o.roundLimit > time.Hour:
		return opt, fail(exitUsage, "", "--round-limit %s: want 10ms..1h", o.roundLimit)
	case o.maxWait < 0:
		return opt, fail(exitUsage, "", "--max-wait %s: want zero or more", o.maxWait)
	}
	if o.optimize != "" {
		if opt.Objective, err = protocol.ParseObjective(o.optimize); err != nil {
			return opt, fail(exitUsage, "", "--optimize: %w", err)
		}
	}
	if o.maxCost != "" {
		if opt.MaxCost, err = protocol.ParseCredits(o.maxCost); err != nil || opt.MaxCost <= 0 {
			return opt, fail(exitUsage, "", "--max-cost %q: want a positive number of credits", o.maxCost)
		}
	}
	return opt, nil
}

// buyingTime is what a purchase takes at most before a job could start.
const buyingTime = 10 * time.Second

// readRequest reads an RFQL document that may be bought now. A request without
// wall time and start gets its start written in, so that all who read it mean
// the same slot.
func readRequest(in io.Reader, path string) ([]byte, rfql.Document, error) {
	b, err := readInput(in, path, protocol.MaxDocument)
	if err != nil {
		return nil, rfql.Document{}, err
	}
	draft, _, err := rfql.Read(b)
	if err != nil {
		return nil, rfql.Document{}, rfqlError(path, err)
	}
	doc, err := rfql.Check(draft, time.Now().Add(buyingTime))
	if err != nil {
		return nil, doc, rfqlError(path, err)
	}
	for _, q := range draft.Requests {
		if q.Wall == 0 && q.NotBefore.IsZero() {
			return doc.XML(), doc, nil
		}
	}
	return b, doc, nil
}

// rfqlError is one line per fault, with the file.
func rfqlError(path string, err error) error {
	var faults rfql.Faults
	if errors.As(err, &faults) {
		return fail(exitUsage, "'ramp rfql show "+path+"' prints what was understood", "%s", strings.TrimSpace(faults.In(path)))
	}
	return fail(exitUsage, "", "%s: %w", path, err)
}

// readInput reads a file, or standard input for "-", up to a bound.
func readInput(in io.Reader, path string, most int64) ([]byte, error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fail(exitUsage, "", "%w", err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, fail(exitUsage, "", "read %s: %w", path, err)
	}
	if int64(len(b)) > most {
		return nil, fail(exitUsage, "", "%s: more than %d bytes", path, most)
	}
	return b, nil
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

func runBuy(c *cobra.Command, path string, o buyFlags) error {
	b, doc, err := readRequest(c.InOrStdin(), path)
	if err != nil {
		return err
	}
	opt, err := o.options(doc)
	if err != nil {
		return err
	}
	agent, closeAgent, err := openUser(c)
	if err != nil {
		return err
	}
	defer closeAgent()
	call := buyCall{ID: newPurchaseID(o.quote), Name: requestName(path, doc), Document: string(b), Options: opt}
	p, err := followPurchase(c, agent, "/v1/buy", call, call.ID)
	if err != nil {
		return err
	}
	return printResult(c, p, o.quote)
}

func printResult(c *cobra.Command, p message.Purchase, quote bool) error {
	if wantsJSON(c) {
		if err := printJSON(stdout(c), p); err != nil {
			return err
		}
	} else {
		printPurchase(stdout(c), p)
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

// followPurchase shows how a purchase goes on until it is over.
func followPurchase(c *cobra.Command, agent *caller, path string, call any, id string) (message.Purchase, error) {
	show := newProgress(stderr(c))
	defer show.end()
	var last message.Purchase
	done := false
	err := agent.stream(c.Context(), path, call, func(raw json.RawMessage) error {
		var line progressLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return err
		}
		last, done = line.Purchase, line.Done
		show.purchase(last)
		if last.State == "awaiting approval" && !done {
			return approve(c, agent, show, last)
		}
		return nil
	})
	if err == nil && !done {
		err = fail(exitFailed, "'ramp user show "+id+"' tells what became of it", "the agent stopped before the purchase was over")
	}
	return last, interrupted(err, agent, id)
}

// interrupted says what goes on after Ctrl-C.
func interrupted(err error, agent *caller, id string) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	if agent.daemon {
		return fail(exitFailed, "'ramp user cancel "+id+"' stops it", "interrupted; the daemon goes on with purchase %s", id)
	}
	return fail(exitFailed, "", "interrupted; what was signed of purchase %s is carried on by the next command", id)
}

// approve asks the person at the terminal; without one the answer is no.
func approve(c *cobra.Command, agent *caller, show *progress, p message.Purchase) error {
	show.end()
	yes := false
	if in, ok := c.InOrStdin().(*os.File); ok && isTerminal(in) {
		printPurchase(stderr(c), p)
		fmt.Fprint(stderr(c), "Buy this? [y/N] ")
		line, err := bufio.NewReader(in).ReadString('\n')
		answer := strings.ToLower(strings.TrimSpace(line))
		yes = err == nil && (answer == "y" || answer == "yes")
	}
	return agent.call(c.Context(), "POST", "/v1/approve", idCall{ID: p.ID, Yes: yes}, nil)
}
