package rfql

import (
	"fmt"
	"time"

	"ramp/protocol"
)

// Check makes a Document from a draft. Its error is Faults.
//
// now is the earliest instant at which a job could start: a seller passes its clock, a buyer its
// clock plus the time that buying takes. Check refuses a request whose wall time does not fit
// between now and its end, or whose end has passed. A request with neither WallTime nor a start
// runs from now, in whole seconds rounded up, to its end; the Document then has that start, so that
// all readers see the same slot (D: 002 does not define this).
//
// With a zero now, Check compares nothing with the clock, for old documents, and refuses
// requests with neither WallTime nor a start.
func Check(d Draft, now time.Time) (Document, error) {
	c := checker{draft: d, now: now.UTC().Round(0)}
	if now.IsZero() {
		c.now = time.Time{}
	}
	c.check()
	if len(c.faults) > 0 {
		c.faults.sort()
		return Document{}, c.faults
	}
	return Document{objective: d.Objective, together: d.SameStart, ceiling: c.ceiling, requests: c.requests}, nil
}

// checker applies the rules that a schema cannot express. Since a draft may not have been
// read, it applies those of the schema too.
type checker struct {
	draft    Draft
	now      time.Time // zero: unknown
	timeless bool      // without faults that need a clock
	faults   Faults
	requests []Request
	ceiling  protocol.Credits
}

func (c *checker) fault(class Class, request int, t Term, found, allowed, hint string) {
	if len(c.faults) < MaxFaults {
		c.faults = append(c.faults, Fault{
			Class: class, Line: c.draft.line(request, t), Request: request,
			Term: t, Found: found, Allowed: allowed, Hint: hint,
		})
	}
}

func (c *checker) check() {
	c.faults = append(c.faults, c.draft.faults...)
	if n := len(c.draft.Requests); n < 1 || n > protocol.MaxUnits {
		c.fault(Form, protocol.AllUnits, RequestForQuotation, fmt.Sprintf("%d requests", n), fmt.Sprintf("1 to %d", protocol.MaxUnits), "")
		return
	}
	if o := c.draft.Objective; o != 0 {
		if _, err := protocol.ParseObjective(o.String()); err != nil {
			c.fault(Form, protocol.AllUnits, Optimize, o.String(), objectiveAllowed, "")
		}
	}
	c.requests = make([]Request, 0, len(c.draft.Requests))
	for i := range c.draft.Requests {
		c.request(i, &c.draft.Requests[i])
	}
	if c.draft.SameStart {
		c.sameStart()
	}
}

// sameStart refuses requests whose windows have no start in common.
func (c *checker) sameStart() {
	var first, last Request // with the latest earliest start, and with the earliest latest one
	latest := func(r Request) time.Time { return r.End.Add(-r.Wall) }
	for i, r := range c.requests {
		if i == 0 || r.NotBefore.After(first.NotBefore) {
			first = r
		}
		if i == 0 || latest(r).Before(latest(last)) {
			last = r
		}
	}
	if len(c.faults) == 0 && first.NotBefore.After(latest(last)) {
		found := fmt.Sprintf("request %d from %s on, request %d until %s", first.Unit+1, stamp(first.NotBefore), last.Unit+1, stamp(latest(last)))
		c.fault(Meaning, first.Unit, StartDate, found, "a start that all requests have in common, since they must begin together", "")
	}
}

func (c *checker) request(i int, d *DraftRequest) {
	before := len(c.faults)
	c.words(i, d)
	c.numbers(i, d)
	r := Request{
		Unit: i, Name: d.Name, Application: d.Application, Price: d.Price,
		Nodes: d.NodeCount, NodeCores: d.NodeCores,
		OS: d.OS, OSVersion: d.OSVersion, Arch: d.Arch, CPUSpeed: d.CPUSpeed,
		Bandwidth: d.Bandwidth, RAMPerCore: d.RAMPerCore, TotalDisk: d.TotalDisk, NodeDisk: d.NodeDisk,
		Contract: d.Contract,
	}
	r.Cores = c.cores(i, d)
	r.NotBefore, r.End, r.Wall = c.window(i, d)
	c.contract(i, d, r)
	if len(c.faults) == before {
		c.cost(r)
	}
	c.requests = append(c.requests, r)
}

func (c *checker) words(i int, d *DraftRequest) {
	for _, t := range [...]Term{Name, Application, OperatingSystem, OSVersion, Architecture} {
		s := *d.word(t)
		if s != "" && (!validWord(s) || !collapsed(s)) {
			c.fault(Form, i, t, quote(s), wordAllowed+", without white space at its ends or twice in a row", "")
		}
	}
}

func (c *checker) numbers(i int, d *DraftRequest) {
	if d.Price < 0 {
		c.fault(Form, i, CPUHourCost, d.Price.String(), priceAllowed, "")
	}
	for _, t := range [...]Term{CPUSpeed, InterNodeBandwidth, RAMPerCore, TotalDiskSpace, NodeDiskSpace, TotalCores, NodeCount, NodeCores} {
		if n := *d.number(t); n < 0 || n > MaxCount {
			c.fault(Form, i, t, fmt.Sprint(n), numberAllowed(t), "")
		}
	}
	if d.TotalDisk != 0 && d.NodeDisk != 0 {
		c.fault(Form, i, Disk, "both TotalDiskSpace and NodeDiskSpace", "one of them", "")
	}
	if d.Wall < 0 || d.Wall > MaxWall || d.Wall%time.Minute != 0 {
		c.fault(Form, i, WallTime, d.Wall.String(), numberAllowed(WallTime), "")
	}
}

func (c *checker) cores(i int, d *DraftRequest) int {
	noded := d.NodeCount != 0 || d.NodeCores != 0
	switch {
	case noded && d.TotalCores != 0:
		c.fault(Form, i, Cores, "both TotalCores and Nodes", "one of them", "")
	case noded && (d.NodeCount == 0 || d.NodeCores == 0):
		c.fault(Form, i, Nodes, "only one of NodeCount and NodeCores", "both", "")
	case noded:
		return c.product(i, d.NodeCount, d.NodeCores)
	case d.TotalCores == 0:
		c.fault(Form, i, Cores, "neither", "one of TotalCores and Nodes", "")
	}
	return d.TotalCores
}

func (c *checker) product(i, nodes, each int) int {
	if nodes > 0 && each > MaxCount/nodes {
		c.fault(Meaning, i, Nodes, fmt.Sprintf("%d nodes with %d cores", nodes, each), fmt.Sprintf("at most %d cores in total", MaxCount), "")
		return 0
	}
	return nodes * each
}

// cost refuses amounts that do not fit in Credits, of one request and of all.
func (c *checker) cost(r Request) {
	if r.Wall == 0 {
		return // reported already, or unknown without a clock
	}
	cost, err := protocol.Cost(r.Price, r.Cores, r.Wall)
	if err == nil {
		c.ceiling, err = c.ceiling.Add(cost)
	}
	if err != nil {
		found := fmt.Sprintf("%s credits for each of %d cores over %s", r.Price, r.Cores, r.Wall)
		c.fault(Meaning, r.Unit, CPUHourCost, found, fmt.Sprintf("at most %s credits for all requests together", protocol.MaxCredits), "")
	}
}
