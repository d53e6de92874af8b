package slurm

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
)

// says reports whether a command failed with these words. Slurm has no error codes, but
// the words have not changed since long before 22.05.
func says(err error, words string) bool {
	var exit *queue.ExitError
	return errors.As(err, &exit) && strings.Contains(strings.ToLower(exit.Words), words)
}

// Slurm's words.
const (
	saysTwice     = "duplicate reservation name"
	saysNone      = "not found"
	saysInvalid   = "requested reservation is invalid" // deleting a missing one
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
	if slot.Nodes > 0 {
		return b.reserveNodes(now, id, slot)
	}
	err := b.create(id, slot, coreCount(slot))
	twice := says(err, saysTwice)
	if err != nil && !twice {
		return b.refused(now, id, slot, err)
	}
	return b.made(now, id, slot, twice)
}

func coreCount(slot protocol.Slot) string { return fmt.Sprintf("CoreCnt=%d", slot.Cores) }

// create makes a reservation of so many cores, or of nodes.
func (b *batch) create(id string, slot protocol.Slot, of string) error {
	_, err := b.slow.run("scontrol", "create", "reservation",
		"ReservationName="+b.mark.Name(id), "PartitionName="+b.cfg.Partition, of,
		"StartTime="+slot.Start.Format(stamp), "EndTime="+slot.End.Format(stamp), "Users="+strings.Join(b.cfg.Users, ","))
	return err
}

// made reads back a new or existing reservation.
func (b *batch) made(now time.Time, id string, slot protocol.Slot, twice bool) (protocol.Slot, string, *protocol.Reason) {
	name := b.mark.Name(id)
	got, why := b.part.granted(now, id)
	switch {
	case why != nil && why.Code == protocol.CodeUnknown:
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeUnavailable, Note: "Slurm acknowledged the reservation and does not list it"}
	case why != nil:
		return protocol.Slot{}, "", why // the next request finds it
	case got.Cores > 0 && b.part.oversold(got) && !twice:
		return protocol.Slot{}, "", b.giveBack(now, id, slot, protocol.Slot{Start: got.Start, End: got.End})
	case b.part.scattered(id) && !twice:
		return protocol.Slot{}, "", b.giveBack(now, id, slot, got)
	case queue.Equal(got, slot):
		b.slots.ends[name] = slot.End
		return got, name, nil
	case twice:
		return protocol.Slot{}, "", otherSlot()
	}
	return protocol.Slot{}, "", b.giveBack(now, id, slot, got)
}

// giveBack deletes a grant that differs from the request or that no job could use.
func (b *batch) giveBack(now time.Time, id string, slot, got protocol.Slot) *protocol.Reason {
	note := fmt.Sprintf("%d cores wanted, Slurm granted %d from %s to %s", slot.Cores, got.Cores, got.Start.Format(stamp), got.End.Format(stamp))
	free := min(got.Cores, slot.Cores-1)
	if b.part.scattered(id) {
		free = min(free, int(b.part.last.rules.spread*b.part.last.cpus/b.part.last.threads))
		note += fmt.Sprintf(", on more than the %d nodes that a job may have (MaxNodes)", b.part.last.rules.spread)
	}
	if why := b.slots.release(now, b.mark.Name(id)); why != nil {
		note += ", and does not take it back: " + why.Note
	}
	return &protocol.Reason{Code: protocol.CodeBusy, Free: free, Note: note}
}

// refused interprets Slurm's refusal to reserve. Slurm says that nodes are busy also if
// the reservation exists already, since it checks cores before names. Or nodes were
// away and are back by now, so that a second request may succeed; for nodes that are
// still away the refusal is temporary, so that the agent asks again.
func (b *batch) refused(now time.Time, id string, slot protocol.Slot, err error) (protocol.Slot, string, *protocol.Reason) {
	if !says(err, saysBusy) && !says(err, saysTooMany) {
		return protocol.Slot{}, "", refusal(err)
	}
	v, err := b.part.look(now)
	if err != nil {
		return protocol.Slot{}, "", queue.Unavailable(err)
	}
	h, ok := v.mine(id)
	switch {
	case ok:
		return h.again(slot)
	case v.free(slot) >= slot.Cores && b.create(id, slot, coreCount(slot)) == nil:
		return b.made(now, id, slot, false)
	case v.free(slot) < slot.Cores && v.room(v.all, slot) >= slot.Cores:
		return protocol.Slot{}, "", away(v, slot)
	}
	return protocol.Slot{}, "", busy(v, slot)
}

// away says that there would be room if every node were usable. For some seconds after
// slurmctld has started, no node is.
func away(v *view, slot protocol.Slot) *protocol.Reason {
	return &protocol.Reason{Code: protocol.CodeUnavailable, Note: fmt.Sprintf("%d cores wanted, %d of the partition's %d are on unusable nodes now", slot.Cores, v.all-v.capacity, v.all)}
}

func otherSlot() *protocol.Reason {
	return &protocol.Reason{Code: protocol.CodeMismatch, Note: "the reservation already exists, with another slot"}
}

// mayNot begins the note of a refusal for lack of rights.
const mayNot = "the agent's account may not reserve: "

// refusal is the reason why Slurm does not reserve at all.
func refusal(err error) *protocol.Reason {
	switch {
	case says(err, saysTime):
		return &protocol.Reason{Code: protocol.CodeWindow, Note: err.Error()}
	case says(err, saysForbidden):
		return &protocol.Reason{Code: protocol.CodeUnavailable, Note: mayNot + err.Error()}
	}
	return queue.Unavailable(err)
}

// busy is the reason why a view has no room for a slot. Slurm may refuse more than the
// sum of cores shows, for instance before an announced maintenance.
func busy(v *view, slot protocol.Slot) *protocol.Reason {
	if slot.Cores > v.capacity {
		return &protocol.Reason{Code: protocol.CodeSize, Note: fmt.Sprintf("%d cores wanted, the partition has %d", slot.Cores, v.capacity)}
	}
	free := min(v.free(slot), slot.Cores-1)
	return &protocol.Reason{Code: protocol.CodeBusy, Free: free, Note: fmt.Sprintf("%d cores wanted, %d free", slot.Cores, free)}
}

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
	v, err := b.part.seen(now)
	if err != nil {
		return protocol.Slot{}, "", queue.Unavailable(err)
	}
	for _, r := range list {
		r.slot.Nodes = v.wholly(r)
		if r.name == name && r.slot.End.After(now) && (r.partition == "" || r.partition == b.cfg.Partition) {
			return r.slot, name, nil
		}
	}
	return protocol.Slot{}, "", unknown()
}

// saysInOutput finds words that scontrol prints on standard output.
func saysInOutput(out []byte, words string) bool {
	return len(out) < 4*1024 && strings.Contains(strings.ToLower(string(out)), words)
}
