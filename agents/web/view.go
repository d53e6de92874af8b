package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
)

type view struct {
	Title  string
	Bare   bool     // without navigation
	Part   bool     // only the blocks: a fragment of a page
	On     []string // the kinds of events that change it
	Every  bool     // no event tells of its changes: it is fetched every few seconds
	Of     string   // the purchase that these are about; empty: any
	Blocks []block
	Stream *stream // behind the blocks
}

// stream is a text that grows while the page is open. It is not drawn again with the page.
type stream struct {
	Heading, Href, Other string // the address of its events, and of the same text without scripts
}

// block is a part of a page: whatever is set of it, in this order.
type block struct {
	Heading string
	Status  string // read out when it changes
	Note    *note
	Facts   []fact
	Chart   *chart
	Table   *table
	Text    string // as a program printed it
	Code    string // a command to copy
	Form    *form
	Links   []link
	Part    string // ID of an empty place that a form's answer fills
}

// note is a message: of kind "", "good" or "bad".
type note struct {
	Kind string
	Text string
	Help string
}

type fact struct {
	Name  string
	Value cell
}

type link struct{ Text, Href string }

// table has a caption, which also names it for readers of screens.
type table struct {
	Caption string
	Heads   []head
	Rows    [][]cell
	Empty   string // instead of no rows
	More    string // address of the next page
}

// Head names a column, where a narrow window shows each cell with its name.
func (t table) Head(i int) string {
	if i < len(t.Heads) {
		return t.Heads[i].Text
	}
	return ""
}

type head struct {
	Text string
	Num  bool
}

// heads are the headings of a table; those that end with # are above numbers.
func heads(names ...string) []head {
	list := make([]head, len(names))
	for i, n := range names {
		text, num := strings.CutSuffix(n, "#")
		list[i] = head{text, num}
	}
	return list
}

type cell struct {
	Text  string
	Href  string
	Num   bool
	Whole bool          // in one line
	State string        // good, bad or going, of a state
	Left  time.Duration // counted down from when the page was made
	Small string        // below the text
	Form  *form
}

func txt(s string) cell          { return cell{Text: s} }
func num(s string) cell          { return cell{Text: s, Num: true} }
func to(href, s string) cell     { return cell{Text: s, Href: href} }
func (c cell) and(s string) cell { c.Small = s; return c }

// Class is how a cell is set.
func (c cell) Class() string {
	switch {
	case c.Num:
		return "num"
	case c.Whole:
		return "whole"
	case len(c.Text) > longText || len(c.Small) > longText:
		return "long"
	}
	return ""
}

// longText is how many bytes have a column of their own width.
const longText = 24

// form changes something, or asks something.
type form struct {
	Action string
	ID     string
	Fields []field
	Submit string
	Also   []submit // other things to do with the same fields
	Danger bool
	Files  bool   // it may bring files
	Checks string // address that judges the fields while they are filled in
	Into   string // ID of the place of the answer
}

type submit struct {
	Text   string
	Action string
	Into   string
}

type field struct {
	Name, Label, Value, Hint string
	Type                     string // text if empty; hidden, area, select, check, files
	Options                  []link // of a select: text and value
	Required                 bool
	List                     []string // suggestions
}

func hidden(name, value string) field { return field{Name: name, Value: value, Type: "hidden"} }

type navItem struct{ Text, Href string }

// Fresh reports whether the page fetches itself again at events.
func (d pageData) Fresh() bool { return !d.Bare && (len(d.On) > 0 || d.Every) }

// pageData is what the layout needs beside the view.
type pageData struct {
	view
	root
	Agent, Kind   string
	Nav           []navItem
	Self          string // the address of this page
	CSS, JS       string
	Live          string // the address of the page's events
	Command, Zone string
}

func (s *Server) show(w http.ResponseWriter, r *http.Request, status int, v view) {
	s.draw(r, status, v).send(w, r)
}

func (s *Server) draw(r *http.Request, status int, v view) page {
	d := pageData{
		view: v, root: root(s.cfg.Prefix), Agent: s.cfg.Agent.Name(), Kind: kindWords[s.cfg.Kind], Nav: s.nav, Self: s.path(r.URL.RequestURI()),
		CSS: s.path(assetURL("app.css")), JS: s.path(assetURL("app.js")), Command: s.cfg.Command, Zone: zoneWords(s.cfg.Now()),
	}
	d.Live = s.path("/live?") + url.Values{"on": {strings.Join(v.On, ",")}, "id": {v.Of}}.Encode()
	drawn := d.page()
	if v.Part {
		drawn = d.blocks(v.Blocks)
	}
	var out bytes.Buffer
	if err := drawn.Render(context.WithoutCancel(r.Context()), &out); err != nil {
		out.Reset()
		status = http.StatusInternalServerError
		fmt.Fprintf(&out, "the page cannot be drawn: %s", html.EscapeString(err.Error()))
	}
	return page{status, out.Bytes(), sync.OnceValue(func() []byte { return zipped(out.Bytes()) }), v.On, v.Of}
}

var kindWords = map[control.Kind]string{control.User: "user agent", control.Resource: "site", control.Bank: "bank"}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, f *fault) {
	if r.Method == http.MethodPost {
		w.Header().Set("Connection", "close") // its body is not read
	}
	s.show(w, r, f.status, view{Title: "Refused", Bare: true, Blocks: []block{{Note: &note{"bad", f.what, f.help}, Links: []link{{"First page", "/"}}}}})
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.failure(r, err).send(w, r)
}

func (s *Server) failure(r *http.Request, err error) page {
	status, title := http.StatusUnprocessableEntity, "That did not work"
	_, hint := exit.Of(err)
	n := &note{"bad", words.Sentence(err.Error()), words.Sentence(hint)}
	var e *exit.Error
	switch {
	case errors.Is(err, control.ErrGone):
		status, title = http.StatusServiceUnavailable, "The agent does not answer"
		next := "This page goes on by itself as soon as it is back."
		if r.Method == http.MethodPost {
			next = "Reload this page when it runs, and let the browser send the form again: an order that is sent twice counts once."
		}
		n = &note{"bad", "The agent's daemon does not run, or has just ended.", next + " 'ramp status' shows whether it runs, and '" + serveCommands[s.cfg.Kind] + "' starts it. What was ordered and signed is not lost."}
	case errors.As(err, &e) && e.Code == exit.Usage:
		status, title = http.StatusBadRequest, "Something is missing or wrong"
	}
	if r.Header.Get("HX-Request") != "" && r.Method == http.MethodPost { // browsers log other answers as errors, and this one is shown
		status = http.StatusOK
	}
	part := r.Method == http.MethodPost && r.Header.Get("HX-Request") != ""
	v := view{Title: title, Part: part, Blocks: []block{{Note: n}}}
	if r.Method == http.MethodGet { // what it is when the agent is back is not known here
		v.On = everyEvent
	}
	return s.draw(r, status, v)
}

var serveCommands = map[control.Kind]string{control.User: "ramp user serve", control.Resource: "ramp resource serve", control.Bank: "ramp bank serve"}
