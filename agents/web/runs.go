package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/agents/control"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
)

func (s userPages) runs(ctx context.Context, r *http.Request) (view, error) {
	list, err := ask(ctx, s.Server, control.Runs, listCall(r))
	t := &table{
		Caption: "Programs, the newest first", Heads: heads("Name", "State", "Ordered", "Sites", "Units#", "Command"),
		Empty: "No program was run yet. “New request” buys a slot and runs one there.", More: older("/runs", list, func(v message.Run) string { return v.ID }),
	}
	for _, v := range slices.Backward(list) {
		var sites []string
		for _, u := range v.Units {
			sites = append(sites, u.Resource)
		}
		t.Rows = append(t.Rows, []cell{to(runPath(v.ID), words.OrDash(v.Name)).and(short(v.ID)), runState(v), moment(v.Created),
			txt(words.OrDash(strings.Join(slices.Compact(sites), ", "))), num(words.Plural(len(v.Units), "unit")), txt(commandWords(v.Program))})
	}
	return view{Title: "Programs", On: []string{control.EventRun, control.EventPurchase}, Blocks: []block{{Table: t}}}, err
}

func runPath(id string) string { return "/run/" + url.PathEscape(id) }

func runState(v message.Run) cell {
	c := state(cmp.Or(v.State, "ordered"))
	if v.Over {
		c.State = "good"
		if v.Exit != 0 {
			c.State = "bad"
		}
		c = c.and(fmt.Sprintf("exit %d", v.Exit))
	}
	if v.Fault != "" {
		c = c.and(v.Fault)
	}
	return c
}

func commandWords(p message.Program) string {
	if p.App != "" {
		return "application " + p.App
	}
	return words.OrDash(scriptOf(p))
}

func (s userPages) run(ctx context.Context, r *http.Request) (view, error) {
	v, err := ask(ctx, s.Server, control.Run, control.RunCall{ID: r.PathValue("id")})
	if err != nil {
		return view{}, err
	}
	of := fact{"Purchase", to(purchasePath(v.ID), short(v.ID))}
	if v.Federation {
		of = fact{"Job", to("/job/"+url.PathEscape(v.ID), short(v.ID))}
	}
	out := view{Title: "Program " + cmp.Or(v.Name, v.ID), On: []string{control.EventRun}, Of: v.ID}
	out.Blocks = []block{{Status: "State: " + cmp.Or(v.State, "ordered") + ".", Facts: []fact{
		{"State", runState(v)}, {"Ordered", moment(v.Created)}, {"Command", txt(commandWords(v.Program))}, of,
	}}}
	t := &table{Caption: "Units", Heads: heads("Unit#", "Site", "Slot", "Stage", "Exit#", "Output", "Files kept until")}
	for _, u := range v.Units {
		keep, when := txt("-"), slot(u.Slot.Start, u.Slot.End)
		if !u.Status.Keep.IsZero() {
			keep = minute(u.Status.Keep)
		}
		if v.Federation { // it may be suspended for as long as it takes
			when = moment(u.Slot.Start)
		}
		t.Rows = append(t.Rows, []cell{num(fmt.Sprint(u.Unit + 1)), txt(u.Resource), when, state(string(u.Status.Stage)).and(u.Status.Why),
			num(jobExit(v, u)), to(fmt.Sprintf("%s?unit=%d", runPath(v.ID), u.Unit+1), "Show"), keep})
	}
	out.Blocks = append(out.Blocks, block{Table: t})
	if !v.Over {
		for _, a := range []struct {
			verb   message.LaunchVerb
			text   string
			danger bool
		}{{message.VerbSuspend, "Suspend", false}, {message.VerbResume, "Resume", false}, {message.VerbKill, "Kill", true}} {
			if v.Federation && a.verb != message.VerbKill {
				continue // only its site suspends and resumes it
			}
			out.Blocks = append(out.Blocks, block{Form: &form{Action: "/run/control", Submit: a.text, Danger: a.danger, Fields: []field{hidden("id", v.ID), hidden("verb", string(a.verb))}}})
		}
	}
	out.Blocks = append(out.Blocks, outputFiles(v, s.cfg.Now())...)
	unit, err := intOf(r.URL.Query(), "unit", 1)
	if n := len(v.Units); err == nil && n > 0 && unit >= 1 {
		path := runPath(v.ID) + "/" + strconv.Itoa(unit)
		out.Stream = &stream{"Output", path + "/live", path + "/output"}
		if n > 1 {
			out.Stream.Heading = fmt.Sprintf("Output of unit %d", unit)
		}
	}
	return out, err
}

// maxFiles is how many outputs of a unit a page lists.
const maxFiles = 200

// outputFiles are the files that a program has left, each a link that downloads it.
func outputFiles(v message.Run, now time.Time) (list []block) {
	for _, u := range v.Units {
		files := u.Status.Outputs
		if len(files) == 0 {
			continue
		}
		at := runPath(v.ID) + "/" + strconv.Itoa(u.Unit+1)
		b := block{Table: &table{Caption: fmt.Sprintf("Files that unit %d has left", u.Unit+1), Heads: heads("File", "Size#")}, Links: []link{{"All files (ZIP)", at + "/files.zip"}}}
		if len(list) == 0 {
			b.Heading = "Files"
		}
		if len(files) > maxFiles {
			b.Table.Caption += fmt.Sprintf(", the first %d of %d", maxFiles, len(files))
			files = files[:maxFiles]
		}
		gone := !u.Status.Keep.After(now)
		for _, f := range files {
			c := to(at+"/file?path="+url.QueryEscape(f.Path), f.Path)
			if gone {
				c.Href = ""
			}
			b.Table.Rows = append(b.Table.Rows, []cell{c, num(bytesOf(f.Size))})
		}
		if gone {
			b.Links, b.Note = nil, &note{Text: u.Resource + " no longer keeps these files."}
		}
		list = append(list, b)
	}
	return list
}

func jobExit(v message.Run, u message.RunUnit) string {
	switch j := u.Status.Job; {
	case !v.Over || j.State == "":
		return "-"
	case j.State != protocol.JobExited: // killed, or ended with its slot
		return string(j.State)
	}
	return fmt.Sprintf("exit %d", u.Status.Job.Exit)
}

func (s userPages) runControl(ctx context.Context, form url.Values) (string, error) {
	q := control.RunCall{ID: form.Get("id"), Verb: message.LaunchVerb(form.Get("verb"))}
	_, err := ask(ctx, s.Server, control.RunControl, q)
	return runPath(q.ID), err
}

// maxOutput is how much of a unit's output a page shows: the beginning of it.
const maxOutput = 256 << 10

var errEnough = errors.New("enough")

// runOutput shows what a unit prints, as plain text, while it prints it.
func (s userPages) runOutput(w http.ResponseWriter, r *http.Request) {
	unit, err := unitOf(r)
	if err == nil {
		err = allowed(control.RunLog.Call)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	q := control.RunCall{ID: r.PathValue("id"), Unit: unit, Follow: r.URL.Query().Has("follow")}
	sent := 0
	err = control.RunLog.Follow(r.Context(), s.cfg.Client, q, func(l control.LogLine) error {
		if sent += len(l.Data); sent > maxOutput {
			return errEnough
		}
		if _, err := w.Write([]byte(visibleLines(string(l.Data)))); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	})
	switch {
	case err == nil || r.Context().Err() != nil:
	case errors.Is(err, errEnough):
		fmt.Fprintf(w, "\n… more than %d bytes; 'ramp logs %s' shows all\n", maxOutput, q.ID)
	case sent == 0:
		w.Header().Del("Content-Type")
		s.fail(w, r, err)
	}
}

// visibleLines is Visible for a text of several lines, without a bound.
func visibleLines(text string) string {
	var out strings.Builder
	for _, c := range text {
		if c == '\n' || c == '\t' {
			out.WriteRune(c)
		} else {
			out.WriteString(Visible(string(c)))
		}
	}
	return out.String()
}
