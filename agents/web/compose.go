package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
	"ramp/rfql/compose"
)

// buyingTime is how long a purchase takes at most before its job could start.
const buyingTime = 10 * time.Second

// quoteTime is how long a page waits for a quote.
const quoteTime = 25 * time.Second

// inputs are the fields of a request, as compose names them, and what people call them.
var inputs = []struct {
	word        compose.Word
	label, hint string
}{
	{compose.Cores, "Cores", "such as 256; or whole nodes below"},
	{compose.Wall, "Wall time", "such as 2h, 90m or 1d"},
	{compose.Within, "Must end within", "from now, such as 12h"},
	{compose.MaxPrice, "Highest price", "credits per core-hour; empty: the sites' list prices count"},
	{compose.Nodes, "Nodes", "instead of cores: 4x16 are 4 nodes of 16 cores"},
	{compose.NotBefore, "Not before", "a time, or +3h; empty: as soon as possible"},
	{compose.RAM, "Memory per core", "such as 2G"},
	{compose.Disk, "Total disk", "such as 500G"},
	{compose.OS, "Operating system", "such as Linux"},
	{compose.Arch, "Architecture", "such as x86_64"},
	{compose.Name, "Name", "for you"},
}

type composed struct {
	doc     rfql.Document
	options message.Options
	moving  bool // its times were counted from now
	faults  []string
	ignored []string // what nobody reads in a document
}

func (s *Server) read(form url.Values) (c composed) {
	now := s.cfg.Now()
	objective, err := protocol.ParseObjective(cmp.Or(form.Get("optimize"), "cost-time"))
	if err != nil {
		c.faults = append(c.faults, "Optimize: "+err.Error())
	}
	c.options = message.Options{Objective: objective, Confirm: true, RoundLimit: protocol.DefaultRoundLimit}
	if c.options.Rounds, err = intOf(form, "rounds", 0); err != nil || c.options.Rounds < 0 || c.options.Rounds > protocol.MaxRounds {
		c.faults = append(c.faults, fmt.Sprintf("Rounds: want 1..%d, or nothing", protocol.MaxRounds))
	}
	if text := text(form, "max-cost"); text != "" {
		if c.options.MaxCost, err = protocol.ParseCredits(text); err != nil || c.options.MaxCost <= 0 {
			c.faults = append(c.faults, "Highest total: want a number of credits above zero")
		}
	}
	if text := form.Get("document"); strings.TrimSpace(text) != "" {
		draft, found, err := rfql.Read([]byte(text))
		for _, f := range found.Of(rfql.Notice) {
			c.ignored = append(c.ignored, words.Sentence(f.Error()))
		}
		if err == nil {
			c.doc, err = rfql.Check(draft, now.Add(buyingTime))
			c.options.Objective = cmp.Or(draft.Objective, objective)
		}
		return c.fault("Document: ", err)
	}
	b := compose.New(now)
	for _, in := range inputs {
		if text := strings.TrimSpace(form.Get(string(in.word))); text != "" {
			if err := b.Set(in.word, text); err != nil {
				c.faults = append(c.faults, in.label+": "+err.Error())
			}
		}
	}
	if text(form, "cores") != "" && text(form, "nodes") != "" {
		c.faults = append(c.faults, "Cores and Nodes: give one of them")
	}
	if len(c.faults) > 0 {
		return c
	}
	c.doc, err = b.Document(now.Add(buyingTime), objective)
	c.moving = b.Moving()
	return c.fault("", err)
}

// fault adds an error, in the words of the page.
func (c composed) fault(before string, err error) composed {
	if err == nil {
		return c
	}
	names := []string{ // what is longer first
		"missing ", "missing: ", "--cores N (or --nodes)", "Cores", "--wall 2h", "Wall time",
		"--within 12h (or --by)", "Must end within", "--within or --by", "Must end within",
	}
	for _, in := range inputs {
		names = append(names, "--"+string(in.word)+" ", in.label+" ", "--"+string(in.word)+":", in.label+":")
	}
	names = append(names, "--wall", "Wall time", "--within", "Must end within", "--by", "Must end within", "--max-price", "Highest price", "(or --nodes)", "or nodes", "--not-before", "Not before")
	for line := range strings.Lines(err.Error()) {
		c.faults = append(c.faults, before+strings.TrimSpace(strings.NewReplacer(names...).Replace(line)))
	}
	return c
}

func (c composed) err() error {
	if len(c.faults) == 0 {
		return nil
	}
	return exit.Fail(exit.Usage, "go back and mend it; nothing was asked", "%s", strings.Join(c.faults, "; "))
}

// compose shows the form of a request, filled in from an earlier purchase if that is asked.
func (s userPages) compose(ctx context.Context, r *http.Request) (view, error) {
	values, filesHint, more := r.URL.Query(), "they are put where the program starts", ""
	if from := values.Get("from"); from != "" {
		o, err := ask(ctx, s.Server, control.Order, control.IDCall{ID: from})
		if err != nil {
			return view{}, err
		}
		values.Set("document", o.Document)
		values.Set("optimize", o.Options.Objective.String())
		if o.Options.MaxCost > 0 {
			values.Set("max-cost", o.Options.MaxCost.String())
		}
		if o.Options.Rounds > 0 {
			values.Set("rounds", fmt.Sprint(o.Options.Rounds))
		}
		if o.Program != nil {
			more = fillProgram(values, *o.Program)
			if n := len(o.Program.Inputs); n > 0 {
				filesHint = "choose them again: the earlier request had " + words.Plural(n, "file")
			}
		}
	}
	f := &form{Action: buyPath, ID: "compose", Files: true, Submit: "Ask the market", Checks: "/compose/check",
		Also: []submit{{"Only a quote", "/quote", "quote"}}, Fields: []field{hidden("id", control.NewPurchaseID(false))}}
	for _, in := range inputs {
		f.Fields = append(f.Fields, field{Name: string(in.word), Label: in.label, Hint: in.hint, Value: values.Get(string(in.word))})
	}
	f.Fields = append(f.Fields,
		field{Name: "optimize", Label: "Optimize for", Type: "select", Value: cmp.Or(values.Get("optimize"), "cost-time"), Options: []link{{"least cost, and soon", "cost-time"}, {"least cost", "cost"}, {"earliest end", "time"}}},
		field{Name: "max-cost", Label: "Highest total", Hint: "credits for everything; empty: no limit", Value: values.Get("max-cost")},
		field{Name: "rounds", Label: "Rounds", Hint: "empty: until nobody improves", Value: values.Get("rounds")},
		field{Name: "document", Label: "Or an RFQL document", Type: "area", Hint: "it replaces the fields from Cores to Name, and its objective the one above", Value: values.Get("document")},
		field{Name: "command", Label: "A program to run there", Type: "area", Hint: "as in a shell: ./simulate input.dat > result.txt; empty: only time is bought", Value: values.Get("command")},
		field{Name: "app", Label: "Or an application", Hint: "its name at the sites that have it, instead of a program", Value: values.Get("app")},
		field{Name: "params", Label: "Parameters of the application", Type: "area", Hint: "NAME=VALUE, one in each line", Value: values.Get("params")},
		field{Name: "files", Label: "Files that the program needs", Type: "files", Hint: filesHint})
	return view{Title: "New request", Blocks: []block{
		{Note: &note{Text: "Sites bid in rounds. You see their offers, and nothing is bought until you approve the total.", Help: more}},
		{Part: "faults"}, {Form: f}, {Part: "quote"},
	}}, nil
}

// fillProgram fills in an earlier program, and says what of it the form cannot have.
func fillProgram(values url.Values, p message.Program) (more string) {
	values.Set("app", p.App)
	if p.App == "" {
		values.Set("command", scriptOf(p))
	}
	var params []string
	for _, x := range p.Params {
		params = append(params, x.Name+"="+x.Value)
	}
	values.Set("params", strings.Join(params, "\n"))
	if p.Array || len(p.Commands) > 1 {
		return "The earlier request ran several programs, and this one runs one. 'ramp submit' runs arrays."
	}
	return ""
}

// composeCheck judges the fields while they are filled in.
func (s userPages) composeCheck(_ context.Context, r *http.Request) (view, error) {
	v := view{Part: true}
	if f := r.PostForm; f.Get("document")+f.Get("cores")+f.Get("wall")+f.Get("within")+f.Get("max-price")+f.Get("nodes") == "" {
		v.Blocks = []block{{Note: &note{Text: "Needed: cores, wall time, and how soon it must end."}}}
		return v, nil
	}
	c := s.read(r.PostForm)
	if len(c.faults) > 0 {
		for _, f := range c.faults {
			v.Blocks = append(v.Blocks, block{Note: &note{Kind: "bad", Text: words.Sentence(f)}})
		}
		return v, nil
	}
	v.Blocks = []block{{Note: &note{Kind: "good", Text: requestWords(c.doc), Help: strings.Join(c.ignored, " ")}}}
	return v, nil
}

func requestWords(doc rfql.Document) string {
	var list []string
	for i := range doc.Len() {
		q := doc.Request(i)
		text := fmt.Sprintf("%s for %s", words.Plural(q.Cores, "core"), span(q.Wall))
		if cost, err := protocol.Cost(q.Price, q.Cores, q.Wall); err == nil && q.Price > 0 {
			text += fmt.Sprintf(", at most %s credits", cost.Cents())
		}
		list = append(list, text+", ending by "+words.AtMinute(q.End))
	}
	return "Asks for " + strings.Join(list, "; and ") + "."
}

// quote asks the market for a price and shows it.
func (s userPages) quote(ctx context.Context, r *http.Request) (view, error) {
	c := s.read(r.PostForm)
	if err := c.err(); err != nil {
		return view{}, err
	}
	program, err := programOf(r.PostForm, nil)
	if err != nil {
		return view{}, err
	}
	c.options.QuoteOnly, c.options.Confirm = true, false
	q := control.BuyCall{ID: control.NewPurchaseID(true), Name: "quote", Document: string(c.doc.XML()), Options: c.options, Program: program}
	ctx, cancel := context.WithTimeout(ctx, quoteTime)
	defer cancel()
	var p message.Purchase
	err = follow(ctx, s.Server, control.Buy, q, func(l control.ProgressLine) bool {
		p = l.Purchase
		return l.Done
	})
	if ctx.Err() != nil && p.ID != "" {
		err = nil // the rounds up to now are an answer too
	}
	v := view{Title: "Quote", Part: r.Header.Get("HX-Request") != ""}
	b := block{Heading: "Quote", Status: "State: " + p.State + ".", Facts: []fact{{"Total", txt(totalOf(p))}, {"Sites asked", txt(words.Plural(p.Found, "site"))}, {"Rounds", txt(fmt.Sprint(len(p.Rounds)))}}}
	if len(p.Units) > 0 {
		b.Table = unitTable(p)
	}
	changes := p.Relaxations
	p.Relaxations = nil // a form can change only what was ordered
	v.Blocks = append(append(v.Blocks, b), whyNot(p)...)
	if len(changes) > 0 {
		t := &table{Caption: "What would help", Heads: heads("Change")}
		for _, r := range changes {
			t.Rows = append(t.Rows, []cell{txt(relaxWords(r))})
		}
		v.Blocks = append(v.Blocks, block{Table: t})
	}
	return v, err
}

// buyPath is the address of the form that orders.
const buyPath = "/buy"

// buy orders what a form asks for. The form has the ID, so that sending it twice is one order.
func (s userPages) buy(w http.ResponseWriter, r *http.Request) {
	form, inputs, err := s.brought(w, r)
	ctx, cancel := context.WithTimeout(r.Context(), AnswerTime)
	defer cancel()
	c, next := s.read(form), ""
	program, bad := programOf(form, inputs)
	if err = cmp.Or(err, c.err(), bad); err == nil {
		next, err = s.order(ctx, form.Get("id"), c, program)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	http.Redirect(w, r, s.path(next), http.StatusSeeOther)
}

// order begins a purchase, and answers when the agent has it in its journal, which is one
// step later.
func (s userPages) order(ctx context.Context, id string, c composed, program *message.Program) (string, error) {
	if !validID(id) {
		return "", exit.Fail(exit.Usage, "open 'New request' again", "the form has no ID")
	}
	name := "request"
	if c.doc.Len() > 0 {
		name = cmp.Or(c.doc.Request(0).Name, name)
	}
	q := control.BuyCall{ID: id, Name: name, Document: string(c.doc.XML()), Options: c.options, Program: program, Moving: c.moving, Resume: true, Named: true}
	return purchasePath(id), follow(ctx, s.Server, control.Buy, q, func(l control.ProgressLine) bool {
		_, err := ask(ctx, s.Server, control.Purchase, control.IDCall{ID: id})
		return err == nil || l.Done
	})
}

// validID accepts the IDs that forms carry.
func validID(id string) bool {
	return len(id) > 1 && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") == "" && !protocol.IsQuote(id)
}

// relax asks the market again, with one of the changes that a purchase proposes.
func (s userPages) relax(ctx context.Context, form url.Values) (string, error) {
	id := form.Get("id")
	p, err := ask(ctx, s.Server, control.Purchase, control.IDCall{ID: id})
	if err != nil {
		return "", err
	}
	o, err := ask(ctx, s.Server, control.Order, control.IDCall{ID: id})
	if err != nil {
		return "", err
	}
	which, err := intOf(form, "which", -1)
	if err != nil || which < 0 || which >= len(p.Relaxations) {
		return "", exit.Fail(exit.Usage, "reload the page", "the purchase proposes no such change")
	}
	doc, err := relaxed(o.Document, p.Relaxations[which], s.cfg.Now())
	if err != nil {
		return "", err
	}
	o.Options.Confirm = true
	return s.order(ctx, form.Get("next"), composed{doc: doc, options: o.Options}, o.Program)
}

func relaxed(text string, r message.Relaxation, now time.Time) (doc rfql.Document, err error) {
	draft, _, err := rfql.Read([]byte(text))
	if err != nil {
		return doc, err
	}
	if r.Unit < 0 || r.Unit >= len(draft.Requests) {
		return doc, exit.Fail(exit.Usage, "reload the page", "the request has no unit %d", r.Unit+1)
	}
	q := &draft.Requests[r.Unit]
	if r.Price > 0 {
		q.Price = r.Price
	}
	if r.Cores > 0 {
		q.TotalCores, q.NodeCount, q.NodeCores = r.Cores, 0, 0
	}
	if r.Later > 0 {
		q.End = q.End.Add(r.Later)
		if !q.NotBefore.IsZero() {
			q.NotBefore = q.NotBefore.Add(r.Later)
		}
	}
	return rfql.Check(draft, now.Add(buyingTime))
}

// relaxWords describe a change to the request, and how many sites would then offer.
func relaxWords(r message.Relaxation) string {
	text := r.Change
	switch {
	case r.Later == 0 && r.Cores == 0:
		text = "Raise the highest price to " + r.Price.String() + " credits per core-hour"
	case r.Later == 0 && r.Price == 0:
		text = fmt.Sprintf("Ask for %s", words.Plural(r.Cores, "core"))
	}
	text = strings.TrimSuffix(words.Sentence(text), ".") + ": " + words.Plural(r.Offers, "offer")
	if r.From > 0 {
		text += ", from " + perHour(r.From, "")
	}
	return text
}
