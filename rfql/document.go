package rfql

import (
	"slices"
	"time"

	"ramp/protocol"
)

// Document is a checked request for quotation. Check and Parse make Documents; the zero
// value has no requests.
type Document struct {
	objective protocol.Objective
	together  bool
	ceiling   protocol.Credits
	requests  []Request
}

// Request asks for one piece of computing time: a window, a wall time, cores, and
// properties of the machine.
type Request struct {
	Unit        int    // its index in the document, from 0
	Name        string // for people; may be empty
	Application string // to run; may be empty

	Price     protocol.Credits // the most per core-hour; zero: not Priced
	NotBefore time.Time        // UTC; zero: any time
	End       time.Time        // UTC, the deadline
	Wall      time.Duration    // above zero, at most MaxWall and the window

	Cores     int // in total, 1..MaxCount
	Nodes     int // whole nodes; zero: any cores
	NodeCores int // of each node

	// Properties of the machine. Empty and zero ones do not matter.
	OS         string
	OSVersion  string
	Arch       string
	CPUSpeed   int // MHz, at least
	Bandwidth  int // Mbit/s between nodes, at least
	RAMPerCore int // MB, at least
	TotalDisk  int // GB, at least
	NodeDisk   int // GB on each node, at least

	Contract Contract // zero: not metered
}

// Parse reads and checks a document. Its error is Faults of class Form, or else of class
// Meaning. See Check about now.
func Parse(b []byte, now time.Time) (Document, error) {
	d, _, err := Read(b)
	if err != nil {
		return Document{}, err
	}
	return Check(d, now)
}

// Len is the number of requests, 1..protocol.MaxUnits; 0 for the zero Document.
func (d Document) Len() int { return len(d.requests) }

// Request is the request of a unit, 0..Len-1.
func (d Document) Request(unit int) Request { return d.requests[unit] }

// Requests are all requests, in order of Unit.
func (d Document) Requests() []Request { return slices.Clone(d.requests) }

// Objective is the document's own objective; zero if it has none.
func (d Document) Objective() protocol.Objective { return d.objective }

// SameStart reports whether all units must begin at the same second.
func (d Document) SameStart() bool { return d.together }

// Priced reports whether every request names the most that it pays. The buyer's agent fills
// in the others before it sends the document to sellers, which refuse one without.
func (d Document) Priced() bool {
	return !slices.ContainsFunc(d.requests, func(r Request) bool { return r.Price == 0 })
}

// Fill is d with a price for each request that names none, by the request.
func (d Document) Fill(price func(Request) protocol.Credits) (Document, error) {
	draft := d.Draft()
	for i, r := range d.requests {
		if r.Price == 0 {
			draft.Requests[i].Price = price(r)
		}
	}
	return Check(draft, time.Time{})
}

// Equal reports whether d and e ask for the same.
func (d Document) Equal(e Document) bool {
	return d.objective == e.objective && d.together == e.together && slices.Equal(d.requests, e.requests)
}

// Draft is d as a draft that may be changed and checked again.
func (d Document) Draft() Draft {
	out := Draft{Objective: d.objective, SameStart: d.together, Requests: make([]DraftRequest, 0, len(d.requests))}
	for _, r := range d.requests {
		out.Requests = append(out.Requests, r.draft())
	}
	return out
}

func (r Request) draft() DraftRequest {
	d := DraftRequest{
		Name: r.Name, Application: r.Application,
		Price: r.Price, End: r.End, NotBefore: r.NotBefore, Wall: r.Wall,
		OS: r.OS, OSVersion: r.OSVersion, Arch: r.Arch, CPUSpeed: r.CPUSpeed,
		Bandwidth: r.Bandwidth, RAMPerCore: r.RAMPerCore, TotalDisk: r.TotalDisk, NodeDisk: r.NodeDisk,
		NodeCount: r.Nodes, NodeCores: r.NodeCores, Contract: r.Contract,
	}
	if r.Nodes == 0 {
		d.TotalCores = r.Cores
	}
	if r.fills() {
		d.Wall = 0
	}
	return d
}

// fills reports whether r takes its whole window, so that its wall time may be left out
// (and must be, if it is not in whole minutes).
func (r Request) fills() bool { return !r.NotBefore.IsZero() && r.End.Sub(r.NotBefore) == r.Wall }
