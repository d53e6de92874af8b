package protocol

import (
	"fmt"
	"math"
	"time"
)

// Slot is what sellers sell: cores for a while. Start is inclusive, End exclusive.
type Slot struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	Cores int       `json:"cores"`
	Nodes int       `json:"nodes,omitempty"` // whole nodes with equal shares of Cores; 0: any cores
}

// Wall is the slot's wall time.
func (s Slot) Wall() time.Duration { return s.End.Sub(s.Start) }

// Overlaps reports whether s and t share an instant.
func (s Slot) Overlaps(t Slot) bool { return s.Start.Before(t.End) && t.Start.Before(s.End) }

// Validate reports whether s has cores in 1..MaxCores, evenly on its nodes, and ends after
// it starts.
func (s Slot) Validate() error {
	if s.Cores < 1 || s.Cores > MaxCores {
		return fmt.Errorf("slot: %d cores, want 1..%d", s.Cores, MaxCores)
	}
	if s.Nodes < 0 || s.Nodes > 0 && s.Cores%s.Nodes != 0 {
		return fmt.Errorf("slot: %d nodes for %d cores, want a divisor of them", s.Nodes, s.Cores)
	}
	if !s.End.After(s.Start) {
		return fmt.Errorf("slot: ends %s, not after its start %s", s.End.Format(time.RFC3339), s.Start.Format(time.RFC3339))
	}
	return nil
}

// Span is how many cores are available jointly from Start to End.
type Span struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	Cores int       `json:"cores"`
}

// Item is an offer's part for one unit of a request.
type Item struct {
	Unit  int     `json:"unit"` // index of the request in the document, from 0
	Slot  Slot    `json:"slot"`
	Price Credits `json:"price_core_hour"` // per core-hour
	Cost  Credits `json:"cost"`            // of this item alone
	Least Credits `json:"least,omitempty"` // metered: due even if the cores stay idle, at most half of Cost
}

// Offer is a seller's binding bid for one unit, or for several together.
type Offer struct {
	ID         string    `json:"id"` // unique among the seller's offers of a conversation
	Items      []Item    `json:"items"`
	Cost       Credits   `json:"cost"` // of all items; may be less than their sum
	ValidUntil time.Time `json:"valid_until"`
	Group      string    `json:"group,omitempty"`   // at most one offer of a group can be bought
	Voucher    bool      `json:"voucher,omitempty"` // the seller wants the bank's hold before it reserves
	// Queued is the probability that the seller's queue alone would start jobs of
	// these sizes by the offered starts, had they been submitted with the offer.
	Queued Odds `json:"queued,omitzero"`
}

// Properties of a machine decide whether it meets the static terms of a request
// (002 §5.2). A zero property is unknown and fails a term that needs it.
type Properties struct {
	OS         string `json:"os,omitempty"`
	OSVersion  string `json:"os_version,omitempty"`
	Arch       string `json:"arch,omitempty"`
	CPUSpeed   int    `json:"cpu_speed_mhz,omitempty"`
	Bandwidth  int    `json:"bandwidth_mbits,omitempty"` // between nodes
	RAMPerCore int    `json:"ram_per_core_mb,omitempty"`
	TotalDisk  int    `json:"total_disk_gb,omitempty"`
	NodeDisk   int    `json:"node_disk_gb,omitempty"`
	Cores      int    `json:"cores"`
	NodeCores  int    `json:"node_cores,omitempty"` // cores per node
}

// Validate returns an error unless every figure is in its range.
func (p Properties) Validate() error {
	for _, f := range []struct {
		key     string
		n, most int
	}{
		{"cpu_speed_mhz", p.CPUSpeed, math.MaxInt32},
		{"bandwidth_mbits", p.Bandwidth, math.MaxInt32},
		{"ram_per_core_mb", p.RAMPerCore, math.MaxInt32},
		{"total_disk_gb", p.TotalDisk, math.MaxInt32},
		{"node_disk_gb", p.NodeDisk, math.MaxInt32},
		{"node_cores", p.NodeCores, MaxCores},
		{"cores", p.Cores, MaxCores},
	} {
		if f.n < 0 || f.n > f.most {
			return fmt.Errorf("%s %d: want 0..%d", f.key, f.n, f.most)
		}
	}
	return nil
}

// Objective says which of the sets that satisfy a request is best.
type Objective int

// The objectives; the numbers are sent and stored.
const (
	ObjectiveCost     Objective = 1 // least cost, then earliest finish
	ObjectiveTime     Objective = 2 // earliest finish, then least cost
	ObjectiveCostTime Objective = 3 // earliest finish at up to 5 % above the least cost, then least cost
)

func (o Objective) String() string {
	switch o {
	case ObjectiveCost:
		return "cost"
	case ObjectiveTime:
		return "time"
	case ObjectiveCostTime:
		return "cost-time"
	}
	return fmt.Sprintf("objective(%d)", int(o))
}

// ParseObjective reads "cost", "time" or "cost-time".
func ParseObjective(s string) (Objective, error) {
	for _, o := range []Objective{ObjectiveCost, ObjectiveTime, ObjectiveCostTime} {
		if s == o.String() {
			return o, nil
		}
	}
	return 0, fmt.Errorf("objective %q: want cost, time or cost-time", Clip(s))
}
