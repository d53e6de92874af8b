package rfql

import (
	"time"

	"ramp/protocol"
)

// Draft is a document that nobody has vouched for: read from text, or built by
// hand. Check makes a Document of it. One that was read with faults stays
// refused, whatever is done to its fields: build another from its Requests.
type Draft struct {
	Objective protocol.Objective // zero: not said
	Requests  []DraftRequest     // 1..protocol.MaxUnits

	lines  [][positions]int // on which each term of each request stood, if read
	doubts Faults           // found while reading; the fields alone need not show them
}

// DraftRequest is a request as it was written. The zero value of an optional
// field means that the term is not given.
type DraftRequest struct {
	Name        string // what people call it; optional
	Application string // what will run; optional

	Price     protocol.Credits // CPUHourCost: the most per core-hour
	End       time.Time        // EndDate and EndTime
	NotBefore time.Time        // StartDate and StartTime; optional
	Wall      time.Duration    // WallTime, whole minutes; optional

	OS         string // optional, as are all below
	OSVersion  string
	Arch       string
	CPUSpeed   int // MHz
	Bandwidth  int // Mbit/s between nodes
	RAMPerCore int // MB
	TotalDisk  int // GB; this or NodeDisk
	NodeDisk   int // GB

	TotalCores int // this, or both of the next
	NodeCount  int
	NodeCores  int // per node

	Contract Contract // optional, in our own namespace
}

// number is where the value of a counting term is kept; nil for other terms.
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

// word is where the value of a worded term is kept; nil for other terms.
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

// line is where a term of a request stood; 0 if the draft was not read.
func (d Draft) line(request int, t Term) int {
	if request < 0 || request >= len(d.lines) {
		return 0
	}
	if line := d.lines[request][t.position()]; line > 0 {
		return line
	}
	return d.lines[request][0]
}
