package control

import (
	"cmp"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// JobCall submits a job to a federation. Home is a site's name or agent ID; empty: the first
// known site that is in a federation.
type JobCall struct {
	ID      string           `json:"id"`
	Name    string           `json:"name"`
	Home    string           `json:"home,omitempty"`
	Level   string           `json:"level"`
	Terms   message.JobTerms `json:"terms"`
	Program *message.Program `json:"program"`
}

// JobView is a job of a federation, in JSON; the names are fixed.
type JobView struct {
	ID         string           `json:"id"`
	Name       string           `json:"name,omitempty"`
	Created    time.Time        `json:"created,omitzero"`
	Level      string           `json:"level"`
	Modules    JobModules       `json:"modules"`
	State      message.JobState `json:"state"`
	Heard      time.Time        `json:"heard,omitzero"` // when its home told this
	Home       protocol.AgentID `json:"home"`
	Site       protocol.AgentID `json:"site"`
	Auctions   []JobAuction     `json:"auctions"`
	Preempted  int              `json:"preempted"`
	Ran        float64          `json:"ran_s"`
	Suspended  float64          `json:"suspended_s"`
	Processing float64          `json:"processing_s"` // from its submission to its end
	Exit       int              `json:"exit"`
	Why        string           `json:"why,omitempty"`
	Refused    protocol.Code    `json:"refused,omitempty"`
}

// JobModules are the modules of a job.
type JobModules struct {
	Least int `json:"least"`
	Most  int `json:"most"`
	Got   int `json:"got"`
}

// JobAuction is an auction of a job.
type JobAuction struct {
	N       int                `json:"n"`
	Ta      float64            `json:"ta_s"`
	Mean    float64            `json:"mean_s"`
	Minimum float64            `json:"minimum"` // in modules
	Bids    []JobBidView       `json:"bids"`
	Winner  protocol.AgentID   `json:"winner"`
	Refused []protocol.AgentID `json:"refused"`
}

// JobBidView is a bid.
type JobBidView struct {
	Site     protocol.AgentID  `json:"site"`
	Seq      int64             `json:"seq"`
	At       time.Time         `json:"at"`
	Bid      float64           `json:"bid"` // in modules
	Free     int               `json:"free"`
	Victims  []message.Victims `json:"victims"`
	Transfer float64           `json:"transfer_s"`
}

// ViewJob shows a job as its owner's agent knows it.
func ViewJob(r message.JobRow) JobView {
	p := r.Progress
	v := JobView{
		ID: r.ID, Name: r.Name, Created: r.Created, Level: r.Level, Modules: JobModules{r.Terms.Least, r.Terms.Most, p.Got}, State: p.State, Heard: r.Heard, Home: r.Home, Site: p.Site,
		Preempted: p.Preempted, Ran: p.Ran.Seconds(), Suspended: p.Suspended.Seconds(), Exit: p.Exit, Why: p.Why, Refused: r.Refused, Auctions: []JobAuction{},
	}
	if r.Refused != "" {
		v.State, v.Why = message.JobFailed, r.Why
	}
	v.State = cmp.Or(v.State, message.JobQueued)
	if p.State.Over() {
		v.Processing = r.Ended.Sub(r.Created).Seconds()
	}
	if r.History == nil {
		return v
	}
	for _, a := range r.History.Auctions {
		x := JobAuction{N: a.Number, Ta: a.Length.Seconds(), Mean: a.Mean.Seconds(), Minimum: float64(a.Minimum) / 1000, Winner: a.Winner, Refused: a.Refused, Bids: []JobBidView{}}
		if x.Refused == nil {
			x.Refused = []protocol.AgentID{}
		}
		for _, b := range a.Bids {
			y := JobBidView{Site: b.Site, Seq: b.Seq, At: b.At, Bid: float64(b.Bid) / 1000, Free: b.Free, Victims: b.Victims, Transfer: b.Transfer.Seconds()}
			if y.Victims == nil {
				y.Victims = []message.Victims{}
			}
			x.Bids = append(x.Bids, y)
		}
		v.Auctions = append(v.Auctions, x)
	}
	return v
}

// QueueLine is a job of a federation at a site, in JSON; the names are fixed.
type QueueLine struct {
	ID        string           `json:"id"`
	Level     string           `json:"level"`
	Number    int              `json:"number"` // of the level
	State     message.JobState `json:"state"`
	Home      protocol.AgentID `json:"home"`
	Owner     protocol.AgentID `json:"owner"`
	Modules   JobModules       `json:"modules"`
	Preempted int              `json:"preempted"`
	Ran       float64          `json:"ran_s"`
	Suspended float64          `json:"suspended_s"`
}

// SiteQueue are the jobs of a federation at a site.
type SiteQueue struct {
	Rules    string            `json:"rules"` // SHA-256 of its rules file
	Modules  int               `json:"modules"`
	Shortage string            `json:"shortage,omitempty"` // why these are fewer than are configured
	Jobs     []QueueLine       `json:"jobs"`
	Auction  int               `json:"auctions"` // in which it bids
	Members  map[string]string `json:"members"`  // of the rules file: "same", "mismatch" or "unknown", by agent
}
