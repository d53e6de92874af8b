package slurm

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
)

// says reports whether a command failed with these words. Slurm has no codes for
// them; they are its own since long before 22.05.
func says(err error, words string) bool {
	var exit *queue.ExitError
	return errors.As(err, &exit) && strings.Contains(strings.ToLower(exit.Words), words)
}

// Slurm's words.
const (
	saysTwice     = "duplicate reservation name"
	saysNone      = "not found"
	saysInvalid   = "requested reservation is invalid" // deleting what is not there
	saysBusy      = "requested nodes are busy"
	saysTooMany   = "node configuration is not available"
	saysTime      = "invalid time"
	saysInUse     = "reservation is in use"
	saysForbidden = "permission denied"
	saysNoAccess  = "access denied to requested reservation"
	saysNoUser    = "invalid user id"
)

// reserve makes a reservation and reads it back.
func (b *batch) reserve(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason) {
	err := b.create(id, slot)
	twice := says(err, saysTwice)
	if err != nil && !twice {
		return b.refused(now, id, slot, err)
	}
	return b.made(now, id, slot, twice)
}

func (b *batch) create(id string, slot protocol.Slot) error {
	_, err := b.slow.run("scontrol", "create", "reservation",
		"ReservationName="+b.mark.Name(id), "PartitionName="+b.cfg.Partition, fmt.Sprintf("CoreCnt=%d", slot.Cores),
		"StartTime="+slot.Start.Format(stamp), "EndTime="+slot.End.Format(stamp), "Users="+strings.Join(b.cfg.Users, ","))
	return err
}

// made reads back what Slurm says it has made, or has already.
func (b *batch) made(now time.Time, id string, slot protocol.Slot, twice bool) (protocol.Slot, string, *protocol.Reason) {
	name := b.mark.Name(id)
	got, why := b.granted(now, id)
	switch {
	case why != nil && why.Code == protocol.CodeUnknown:
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeUnavailable, Note: "Slurm acknowledged the reservation and does not have it"}
	case why != nil:
		return protocol.Slot{}, "", why // asked again, it is found
	case got.Cores > 0 && b.oversold(got) && !twice:
		return protocol.Slot{}, "", b.giveBack(now, id, slot, protocol.Slot{Start: got.Start, End: got.End})
	case b.scattered(id) && !twice:
		return protocol.Slot{}, "", b.giveBack(now, id, slot, got)
	case queue.Equal(got, slot):
		b.ends[name] = slot.End
		return got, name, nil
	case twice:
		return protocol.Slot{}, "", otherSlot()
	}
	return protocol.Slot{}, "", b.giveBack(now, id, slot, got)
}

// granted reads a reservation back, together with all others.
func (b *batch) granted(now time.Time, id string) (protocol.Slot, *protocol.Reason) {
	list, err := b.slow.reservations()
	if err != nil {
		return protocol.Slot{}, queue.Unavailable(err)
	}
	if b.last == nil {
		if _, err := b.look(now); err != nil {
			return protocol.Slot{}, queue.Unavailable(err)
		}
	}
	b.last.at, b.last.held = now, nil
	b.last.hold(b.mark, b.cfg.Partition, list)
	h, ok := b.last.mine(id)
	if !ok {
		return protocol.Slot{}, unknown()
	}
	return h.slot, nil
}

// oversold reports whether the reservations of the partition add up to more cores
// than it has: Slurm lets whole-node reservations lie over others.
func (b *batch) oversold(slot protocol.Slot) bool {
	var uses []protocol.Slot
	for _, h := range b.last.held {
		uses = append(uses, h.slot)
	}
	return queue.Taken(uses, slot) > b.last.all
}

// scattered reports whether a reservation lies on more nodes than a job may have.
func (b *batch) scattered(id string) bool {
	h, _ := b.last.mine(id)
	return b.last.rules.spread > 0 && int64(h.on) > b.last.rules.spread
}

// giveBack deletes a grant that is not what was asked, or that no job could use.
func (b *batch) giveBack(now time.Time, id string, slot, got protocol.Slot) *protocol.Reason {
	note := fmt.Sprintf("%d cores wanted, Slurm granted %d from %s to %s", slot.Cores, got.Cores, got.Start.Format(stamp), got.End.Format(stamp))
	free := min(got.Cores, slot.Cores-1)
	if b.scattered(id) {
		free = min(free, int(b.last.rules.spread*b.last.cpus/b.last.threads))
		note += fmt.Sprintf(", on more than the %d nodes that a job may have (MaxNodes)", b.last.rules.spread)
	}
	if why := b.unreserve(now, id); why != nil {
		note += ", and does not take it back: " + why.Note
	}
	return &protocol.Reason{Code: protocol.CodeBusy, Free: free, Note: note}
}

// refused is what it means that Slurm does not reserve. That it is busy may be
// because the reservation is there already: cores come before names. Or nodes
// were away and are back by now, so that it is worth asking once more; those that
// are still away come back, so that what was sold is asked for again.
func (b *batch) refused(now time.Time, id string, slot protocol.Slot, err error) (protocol.Slot, string, *protocol.Reason) {
	if !says(err, saysBusy) && !says(err, saysTooMany) {
		return protocol.Slot{}, "", refusal(err)
	}
	v, err := b.look(now)
	if err != nil {
		return protocol.Slot{}, "", queue.Unavailable(err)
	}
	h, ok := v.mine(id)
	switch {
	case ok && queue.Equal(h.slot, slot):
		return h.slot, h.name, nil
	case ok:
		return protocol.Slot{}, "", otherSlot()
	case v.free(slot) >= slot.Cores && b.create(id, slot) == nil:
		return b.made(now, id, slot, false)
	case v.free(slot) < slot.Cores && v.room(v.all, slot) >= slot.Cores:
		return protocol.Slot{}, "", away(v, slot)
	}
	return protocol.Slot{}, "", busy(v, slot)
}

// away is that there would be room if every node could be used. For some seconds
// after slurmctld has started, none can: their state is unknown.
func away(v *view, slot protocol.Slot) *protocol.Reason {
	return &protocol.Reason{Code: protocol.CodeUnavailable, Note: fmt.Sprintf("%d cores wanted, %d of the partition's %d are on nodes that cannot be used now", slot.Cores, v.all-v.capacity, v.all)}
}

func otherSlot() *protocol.Reason {
	return &protocol.Reason{Code: protocol.CodeMismatch, Note: "the reservation exists with another slot"}
}

// mayNot begins the note of a refusal for lack of rights.
const mayNot = "the agent's account may not reserve: "

// refusal is why Slurm does not reserve at all.
func refusal(err error) *protocol.Reason {
	switch {
	case says(err, saysTime):
		return &protocol.Reason{Code: protocol.CodeWindow, Note: err.Error()}
	case says(err, saysForbidden):
		return &protocol.Reason{Code: protocol.CodeUnavailable, Note: mayNot + err.Error()}
	}
	return queue.Unavailable(err)
}

// busy is why a view has no room for a slot. Slurm may refuse more than the sum
// of cores tells, for instance when a maintenance is announced.
func busy(v *view, slot protocol.Slot) *protocol.Reason {
	if slot.Cores > v.capacity {
		return &protocol.Reason{Code: protocol.CodeSize, Note: fmt.Sprintf("%d cores wanted, the partition has %d", slot.Cores, v.capacity)}
	}
	free := min(v.free(slot), slot.Cores-1)
	return &protocol.Reason{Code: protocol.CodeBusy, Free: free, Note: fmt.Sprintf("%d cores wanted, %d free", slot.Cores, free)}
}

// readBack is a reservation as Slurm has it.
func (b *batch) readBack(now time.Time, id string) (protocol.Slot, string, *protocol.Reason) {
	name := b.mark.Name(id)
	out, err := b.slow.run("scontrol", "-o", "show", "reservation", name)
	if says(err, saysNone) || saysInOutput(out, saysNone) {
		return protocol.Slot{}, "", unknown()
	}
	if err != nil {
		return protocol.Slot{}, "", queue.Unavailable(err)
	}
	list, err := readReservations(out)
	if err != nil {
		return protocol.Slot{}, "", queue.Unavailable(err)
	}
	for _, r := range list {
		if r.name == name && r.slot.End.After(now) && (r.partition == "" || r.partition == b.cfg.Partition) {
			return r.slot, name, nil
		}
	}
	return protocol.Slot{}, "", unknown()
}

// saysInOutput finds words that scontrol prints on its standard output.
func saysInOutput(out []byte, words string) bool {
	return len(out) < 4*1024 && strings.Contains(strings.ToLower(string(out)), words)
}

// remove deletes a reservation; one that is not there is deleted.
func (b *batch) remove(name string) error {
	_, err := b.slow.run("scontrol", "delete", "ReservationName="+name)
	if says(err, saysInvalid) || says(err, saysNone) {
		return nil
	}
	return err
}

// cancel ends the jobs of a reservation, more firmly each time. Signals count
// for jobs that run; those that wait are cancelled in any case.
func (b *batch) cancel(name string) error {
	args := []string{"--quiet", "--reservation=" + name}
	if b.ending[name] > 0 {
		args = append(args, "--signal=KILL", "--full")
	}
	b.ending[name]++
	_, err := b.slow.run("scancel", args...)
	return err
}
