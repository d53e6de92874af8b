package launch

import (
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// register owns the remembered launches. What happens often takes no longer with many
// launches that are over: these are only in a heap, by when they can be forgotten.
type register struct {
	byID  map[string]*job // the batch system's ID
	byKey map[key]*job
	units map[string][]*job // of each reservation, which is one unit, in order of number
	live  map[string]*job   // by ID, those that are not over
	old   dues              // the others

	discarded int // of all
}

// key names a launch in the buyer's words: buyers choose the IDs.
type key struct {
	user     protocol.AgentID
	contract protocol.ContractID
	unit     int
	id       string
}

func (r *register) in(reservation string) []*job { return r.units[reservation] }

func (r *register) running() []*job { return slices.SortedFunc(maps.Values(r.live), byID) }

// due returns the jobs that need to be woken in order of ID, and when the next one does.
func (r *register) due(now time.Time) (list []*job, next time.Time) {
	for _, j := range r.live { // in any order: the list is sorted
		if due := j.due(); !due.IsZero() && !now.Before(due) {
			list = append(list, j)
		} else {
			next = protocol.Earlier(next, due)
		}
	}
	for len(r.old) > 0 && !now.Before(r.old[0].oldAt) {
		j := heap.Pop(&r.old).(*job)
		list = append(list, j)
	}
	if len(r.old) > 0 {
		next = protocol.Earlier(next, r.old[0].oldAt)
	}
	slices.SortFunc(list, byID)
	return list, next
}

// setBack lets no launch wait for a time of before the clock was set back.
func (r *register) setBack(now time.Time) {
	for _, j := range r.byID { // in any order: each by itself
		switch {
		case j.Stage.Over():
			j.retryAt = time.Time{}
			r.old.put(j)
		case j.retryAt.After(now) && !j.withheld():
			j.retryAt = now
		}
	}
}

func byID(a, b *job) int { return strings.Compare(a.ID, b.ID) }

func (r *register) add(j *job) {
	r.byID[j.ID] = j
	r.byKey[j.key()] = j
	unit := r.units[j.Reservation]
	i, _ := slices.BinarySearchFunc(unit, j, func(a, b *job) int { return a.Number - b.Number })
	r.units[j.Reservation] = slices.Insert(unit, i, j)
	if j.Discarded {
		r.discarded++
	}
	r.file(j)
}

// file moves a job to where its stage and its due time belong.
func (r *register) file(j *job) {
	if !j.Stage.Over() {
		r.live[j.ID] = j
		return
	}
	delete(r.live, j.ID)
	r.old.put(j)
}

// save makes a launch durable after a change, and files it where it belongs now.
func (r *register) save(j *job) protocol.Output {
	r.file(j)
	return j.save()
}

// discard keeps of a launch that is over only what prevents its second begin, see job.discard.
func (r *register) discard(j *job) protocol.Output {
	if j.Discarded {
		return protocol.Output{}
	}
	if j.discard(); j.Stage == message.StageCollecting {
		j.become(message.StageDone)
	}
	r.discarded++
	return r.save(j)
}

// vacant is the first account of a job's pool that no other buyer's job has, or "". A job
// has its account until its outputs were taken from it.
func (r *register) vacant(j *job) string {
	taken := map[string]bool{}
	for _, x := range r.live {
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
	delete(r.live, j.ID)
	r.old.drop(j)
	if j.Discarded {
		r.discarded--
	}
	unit := slices.DeleteFunc(r.units[j.Reservation], func(x *job) bool { return x == j })
	if r.units[j.Reservation] = unit; len(unit) == 0 {
		delete(r.units, j.Reservation)
	}
}

// next makes the next launch of a unit. The caller adds it. Within the slot no launch is
// forgotten, so that no number is used again.
func (r *register) next(now time.Time, m protocol.Message, u reserve.Unit, k key) *job {
	number := 1
	if unit := r.units[u.Reservation]; len(unit) > 0 {
		number = unit[len(unit)-1].Number + 1
	}
	return &job{
		ID: jobID(u.Reservation, number), User: k.user, Conversation: m.Conversation, Contract: k.contract, Unit: k.unit,
		Units: u.Units, Launch: k.id, Number: number, Reservation: u.Reservation, Slot: u.Slot,
		late: u.Slot.End.Sub(now) < min(startTime, u.Slot.Wall()/2),
	}
}

// jobID names a launch to the batch system: by its reservation, which is never used
// again, and its number in it.
func jobID(reservation string, number int) string {
	return fmt.Sprintf("%s.%d", strings.ReplaceAll(reservation, "/", "_"), number)
}

// full says why a unit takes no further launch.
func (r *register) full(reservation string) *protocol.Reason {
	for _, j := range r.units[reservation] { // at most one is not over
		switch {
		case j.Released:
			return no(protocol.CodeExpired, "you have released the unit")
		case !j.Stage.Over():
			return no(protocol.CodeLimit, "the unit has launch "+j.Launch+", which is "+string(j.Stage))
		}
	}
	return r.tooMany(reservation)
}

// tooMany says which bound prevents another launch of a unit.
func (r *register) tooMany(reservation string) *protocol.Reason {
	unit, kept := r.units[reservation], 0
	for _, j := range unit {
		if !j.Discarded {
			kept++
		}
	}
	for _, b := range []struct {
		n, most int
		of      string
	}{
		{kept, MaxPerUnit, "the unit has %d launches, at most %d are allowed that are not discarded"},
		{len(unit), MaxInUnit, "the unit had %d launches, at most %d are allowed"},
		{len(r.byID) - r.discarded, MaxLaunches, "the site has %d launches, at most %d are allowed"},
		{len(r.byID), MaxRemembered, "the site remembers %d launches, at most %d are allowed"},
	} {
		if b.n >= b.most {
			return no(protocol.CodeLimit, fmt.Sprintf(b.of, b.n, b.most))
		}
	}
	return nil
}

// dues is a heap of jobs that are over, by when they can be forgotten.
type dues []*job

func (d dues) Len() int           { return len(d) }
func (d dues) Less(a, b int) bool { return d[a].oldAt.Before(d[b].oldAt) }
func (d dues) Swap(a, b int) {
	d[a], d[b] = d[b], d[a]
	d[a].oldIndex, d[b].oldIndex = a+1, b+1
}

// Push and Pop are those of heap.Interface.
func (d *dues) Push(x any) {
	j := x.(*job)
	*d = append(*d, j)
	j.oldIndex = len(*d)
}

func (d *dues) Pop() any {
	last := len(*d) - 1
	j := (*d)[last]
	(*d)[last], *d = nil, (*d)[:last]
	j.oldIndex = 0
	return j
}

// put adds a job, or moves it to its new due time.
func (d *dues) put(j *job) {
	if j.oldAt = j.due(); j.oldIndex > 0 {
		heap.Fix(d, j.oldIndex-1)
		return
	}
	heap.Push(d, j)
}

func (d *dues) drop(j *job) {
	if j.oldIndex > 0 {
		heap.Remove(d, j.oldIndex-1)
	}
}
