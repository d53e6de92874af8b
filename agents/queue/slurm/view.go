package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// maxQueued bounds the waiting jobs in a state; the role plays fewer forward.
const maxQueued = 4096

type view struct {
	at       time.Time
	capacity int
	all      int            // cores of all nodes, usable or not
	ours     map[string]int // cores by node
	each     int            // cores of a node that is sold whole
	whole    []string       // those nodes, if usable
	jobs     []queue.Use    // of nodes, by running jobs
	threads  int64          // of a core
	cpus     int64          // the most of a node
	perCPU   int64          // MiB
	rules    rules
	running  []message.RunningJob
	queued   []message.QueuedJob
	held     []held
	late     []held // placeholders that do not run on time
}

// held is a reservation of the partition, or a placeholder job.
type held struct {
	name  string
	id    string // if it has the agent's mark
	mine  bool
	slot  protocol.Slot
	nodes []string  // of a reservation
	job   int64     // the placeholder's number; 0: a true reservation
	runs  bool      // the placeholder has its cores
	user  string    // the placeholder's account
	due   time.Time // when the placeholder must run
}

// again answers another request for the slot's reservation.
func (h held) again(slot protocol.Slot) (protocol.Slot, string, *protocol.Reason) {
	if !queue.Equal(h.slot, slot) {
		return protocol.Slot{}, "", otherSlot()
	}
	return h.slot, h.name, nil
}

func assemble(now time.Time, partition string, mark queue.Mark, nodes []node, jobs []job, list []reservation) (*view, error) {
	ours := map[string]int{}
	v := &view{at: now, threads: nodes[0].threads(), cpus: mostCPUs(nodes), perCPU: perCPU(nodes), ours: ours}
	v.each, v.whole = smallest(nodes)
	for _, n := range nodes {
		ours[n.Name] = n.cores()
		v.all += n.cores()
		if n.usable() {
			v.capacity += n.cores()
		}
	}
	if v.all > protocol.MaxCores {
		return nil, fmt.Errorf("partition %s has %d cores, at most %d", partition, v.all, protocol.MaxCores)
	}
	v.hold(mark, partition, list)
	return v, v.take(mark, partition, jobs)
}

// hold adds the reservations on the partition's nodes.
func (v *view) hold(mark queue.Mark, partition string, list []reservation) {
	for _, r := range list {
		there := 0 // cores of our nodes among its own
		for _, n := range r.nodes {
			there += v.ours[n]
		}
		id, mine := mark.ID(r.name)
		mine = mine && (r.partition == partition || r.partition == "")
		if !mine && (there == 0 || r.slot.Cores == 0) || !r.slot.End.After(v.at) {
			continue
		}
		if r.slot.Nodes = v.wholly(r); !mine {
			r.slot.Cores, r.slot.Nodes = min(r.slot.Cores, there), 0
		}
		v.held = append(v.held, held{name: r.name, id: id, mine: mine, slot: r.slot, nodes: r.nodes})
	}
}

// take adds the jobs that run on the partition's nodes or wait for them.
func (v *view) take(mark queue.Mark, partition string, jobs []job) error {
	var waiting []job
	for _, j := range jobs {
		if h, ok := placeholder(mark, j); ok && j.in(partition) {
			v.placehold(h)
			continue
		}
		switch {
		case j.occupies():
			names, err := hosts(j.Nodes)
			if err != nil {
				return fmt.Errorf("squeue: job %d: %w", j.ID, err)
			}
			if v.on(names) && !v.reserves(j.Reservation) {
				r := j.message(v.at, v.threads)
				v.running = append(v.running, r)
				v.jobs = append(v.jobs, queue.Use{Start: v.at, End: r.End, Nodes: names})
			}
		case j.waits() && j.in(partition):
			waiting = append(waiting, j)
		}
	}
	v.line(waiting)
	return nil
}

// on reports whether any of a running job's nodes is ours. A job that is also on
// others counts in full: the view then shows too few free cores, never too many.
func (v *view) on(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return v.ours[n] > 0 })
}

// reserves reports whether a reservation is listed: jobs in it take no further cores.
func (v *view) reserves(name string) bool {
	return name != "" && slices.ContainsFunc(v.held, func(h held) bool { return h.name == name && !h.slot.Start.After(v.at) })
}

// line sorts the waiting jobs into the order of the queue.
func (v *view) line(waiting []job) {
	inTurn(waiting)
	for _, j := range waiting {
		if e := j.Eligible.instant(); e.After(v.at.Add(time.Minute)) {
			continue // it asked to begin later
		}
		q := message.QueuedJob{Cores: max(j.cores(v.threads), 1), Wall: j.wall(), ID: strconv.FormatInt(j.ID, 10), Submitted: j.waitsFrom()}
		for range j.tasks(maxQueued) {
			if len(v.queued) >= maxQueued {
				return
			}
			v.queued = append(v.queued, q)
			q.ID = "" // only one task of an array has a known ID
		}
	}
}

// placeholder reads a job that holds a slot, see Hold.
func placeholder(mark queue.Mark, j job) (held, bool) {
	id, ok := mark.ID(j.Name)
	f := strings.Fields(j.Comment)
	if !ok || len(f) != 4 || f[0] != "slot" || !j.occupies() && !j.State.has("PENDING") {
		return held{}, false
	}
	start, err1 := strconv.ParseInt(f[1], 10, 64)
	end, err2 := strconv.ParseInt(f[2], 10, 64)
	cores, err3 := strconv.Atoi(f[3])
	slot := protocol.Slot{Start: time.Unix(start, 0).UTC(), End: time.Unix(end, 0).UTC(), Cores: cores}
	if err1 != nil || err2 != nil || err3 != nil || slot.Validate() != nil {
		return held{}, false
	}
	due := slot.Start
	if t := j.Submit.instant(); t.After(due) {
		due = t // it was lost, and made again in its slot
	}
	return held{name: j.Name, id: id, mine: true, slot: slot, job: j.ID, runs: j.occupies(), user: j.User, due: due.Add(startGrace)}, true
}

// slotWord begins the comment of a placeholder.
const slotWord = "slot "

// placehold adds a placeholder. One that does not run on time holds nothing.
func (v *view) placehold(h held) {
	if !h.slot.End.After(v.at) || !h.runs && v.at.After(h.due) {
		v.late = append(v.late, h)
		return
	}
	v.held = append(v.held, h)
}

func (v *view) mine(id string) (held, bool) {
	i := slices.IndexFunc(v.held, func(h held) bool { return h.mine && h.id == id })
	if i < 0 {
		return held{}, false
	}
	return v.held[i], true
}

// free is the number of cores that no running job or reservation occupies over a slot.
func (v *view) free(slot protocol.Slot) int { return v.room(v.capacity, slot) }

// room is the number of free cores over a slot if the partition has so many.
func (v *view) room(cores int, slot protocol.Slot) int {
	uses := make([]protocol.Slot, 0, len(v.held)+len(v.running))
	for _, h := range v.held {
		uses = append(uses, h.slot)
	}
	for _, r := range v.running {
		uses = append(uses, protocol.Slot{Start: v.at, End: r.End, Cores: r.Cores})
	}
	return max(cores-queue.Taken(uses, slot), 0)
}

// message converts the view to the role's words.
func (v *view) message() message.QueueChanged {
	q := message.QueueChanged{At: v.at, Capacity: v.capacity, Running: v.running, Queued: v.queued, Longest: v.rules.longest}
	for _, h := range v.held {
		q.Reservations = append(q.Reservations, message.QueueReservation{ID: h.handle(), Slot: h.slot, Mine: h.mine})
	}
	return q
}

// handle is the role's name of a reservation: its ID, or Slurm's name if it is not the agent's.
func (h held) handle() string {
	if h.mine {
		return h.id
	}
	return h.name
}

// same reports whether two views differ at most in their time.
func (v *view) same(w *view) bool {
	return w != nil && v.capacity == w.capacity && slices.Equal(v.whole, w.whole) && v.rules == w.rules && slices.Equal(v.queued, w.queued) &&
		slices.EqualFunc(v.held, w.held, func(a, b held) bool {
			return a.name == b.name && queue.Equal(a.slot, b.slot)
		}) &&
		slices.EqualFunc(v.running, w.running, func(a, b message.RunningJob) bool {
			return a.ID == b.ID && a.Cores == b.Cores && a.End.Sub(b.End).Abs() < Late
		})
}
