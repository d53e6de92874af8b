package launch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// register owns the remembered launches.
type register struct {
	byID  map[string]*job // the batch system's ID
	byKey map[key]*job
	units map[unitKey]int // launches so far
}

// key names a launch in the buyer's words: buyers choose the IDs.
type key struct {
	user     protocol.AgentID
	contract protocol.ContractID
	unit     int
	id       string
}

type unitKey struct {
	contract protocol.ContractID
	unit     int
}

func newRegister() register {
	return register{byID: map[string]*job{}, byKey: map[key]*job{}, units: map[unitKey]int{}}
}

// all returns the jobs in order of ID.
func (r *register) all() []*job {
	return slices.SortedFunc(maps.Values(r.byID), byID)
}

// in returns the jobs of a reservation in order of ID.
func (r *register) in(reservation string) []*job {
	return r.where(func(j *job) bool { return j.Reservation == reservation })
}

// where returns the jobs that match, in order of ID.
func (r *register) where(match func(j *job) bool) []*job {
	list := slices.DeleteFunc(slices.Collect(maps.Values(r.byID)), func(j *job) bool { return !match(j) })
	slices.SortFunc(list, byID)
	return list
}

func byID(a, b *job) int { return strings.Compare(a.ID, b.ID) }

func (r *register) add(j *job) {
	r.byID[j.ID] = j
	r.byKey[j.key()] = j
	u := unitKey{j.Contract, j.Unit}
	r.units[u] = max(r.units[u], j.Number)
}

// vacant is the first account of a job's pool that no other buyer's job has, or "". A job
// has its account until its outputs were taken from it.
func (r *register) vacant(j *job) string {
	taken := map[string]bool{}
	for _, x := range r.byID {
		if x.User != j.User && (x.submitted() || x.Stage == message.StageCollecting) {
			taken[x.Account] = true
		}
	}
	for _, account := range j.Pool {
		if !taken[account] {
			return account
		}
	}
	return ""
}

func (r *register) remove(j *job) {
	delete(r.byID, j.ID)
	delete(r.byKey, j.key())
}

// next makes the next launch of a unit. The caller adds it.
func (r *register) next(m protocol.Message, u reserve.Unit, k key) *job {
	number := r.units[unitKey{k.contract, k.unit}] + 1
	return &job{
		ID: jobID(u.Reservation, number), User: k.user, Conversation: m.Conversation, Contract: k.contract, Unit: k.unit,
		Units: u.Units, Launch: k.id, Number: number, Reservation: u.Reservation, Slot: u.Slot,
	}
}

// jobID names a launch to the batch system: by its reservation, which is never used
// again, and its number in it.
func jobID(reservation string, number int) string {
	return fmt.Sprintf("%s.%d", strings.ReplaceAll(reservation, "/", "_"), number)
}

// full says why a unit takes no further launch.
func (r *register) full(contract protocol.ContractID, unit int) *protocol.Reason {
	for _, j := range r.byID { // in any order: at most one is not over
		if j.Contract == contract && j.Unit == unit && !j.Stage.Over() {
			return no(protocol.CodeLimit, "the unit has launch "+j.Launch+", which is "+string(j.Stage))
		}
	}
	return r.tooMany(contract, unit)
}

func (r *register) tooMany(contract protocol.ContractID, unit int) *protocol.Reason {
	switch {
	case r.units[unitKey{contract, unit}] >= MaxPerUnit:
		return no(protocol.CodeLimit, fmt.Sprintf("the unit had %d launches, at most %d are allowed", r.units[unitKey{contract, unit}], MaxPerUnit))
	case len(r.byID) >= MaxLaunches:
		return no(protocol.CodeLimit, fmt.Sprintf("the site has %d launches, at most %d are allowed", len(r.byID), MaxLaunches))
	}
	return nil
}
