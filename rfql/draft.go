package rfql

import (
	"time"

	"ramp/protocol"
)

// Draft is an unchecked document, read from text or built by hand. Check makes a Document
// from it. Check refuses a draft that was read with faults even if its fields are changed:
// build a new one from its Requests.
type Draft struct {
	Objective protocol.Objective // may be zero
	SameStart bool               // all units begin at the same second
	Requests  []DraftRequest     // 1..protocol.MaxUnits

	lines  [][positions]int // of each term of each request, if read
	faults Faults           // found by Read; the fields alone may not show them
}

// DraftRequest is an unchecked request. The zero value of an optional field means that
// the term is missing.
type DraftRequest struct {
	Name        string // for people; optional
	Application string // to run; optional

	Price     protocol.Credits // CPUHourCost: the most per core-hour; optional until it is sent
	End       time.Time        // EndDate and EndTime
	NotBefore time.Time        // StartDate and StartTime; optional
	Wall      time.Duration    // WallTime, whole minutes; optional

	OS         string // optional, like all below
	OSVersion  string
	Arch       string
	CPUSpeed   int // MHz
	Bandwidth  int // Mbit/s between nodes
	RAMPerCore int // MB
	TotalDisk  int // GB; this or NodeDisk
	NodeDisk   int // GB

	TotalCores int // this, or both of the following
	NodeCount  int
	NodeCores  int // per node

	Contract Contract // optional, in our own namespace
}

// number is the field of a term with a number; nil for other terms.
func (r *DraftRequest) number(t Term) *int {
	switch t {
	case CPUSpeed:
		return &r.CPUSpeed
	case InterNodeBandwidth:
		return &r.Bandwidth
	case RAMPerCore:
		return &r.RAMPerCore
	case TotalDiskSpace:
		return &r.TotalDisk
	case NodeDiskSpace:
		return &r.NodeDisk
	case TotalCores:
		return &r.TotalCores
	case NodeCount:
		return &r.NodeCount
	case NodeCores:
		return &r.NodeCores
	}
	return nil
}

// word is the field of a term with a word; nil for other terms.
func (r *DraftRequest) word(t Term) *string {
	switch t {
	case Name:
		return &r.Name
	case Application:
		return &r.Application
	case OperatingSystem:
		return &r.OS
	case OSVersion:
		return &r.OSVersion
	case Architecture:
		return &r.Arch
	}
	return nil
}

// line is the line of a term of a request; 0 if the draft was not read.
func (d Draft) line(request int, t Term) int {
	if request < 0 || request >= len(d.lines) {
		return 0
	}
	if line := d.lines[request][t.position()]; line > 0 {
		return line
	}
	return d.lines[request][0]
}
