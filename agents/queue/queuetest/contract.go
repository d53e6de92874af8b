package queuetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Trait is a way in which a batch system may differ from a plain sum of cores.
type Trait int

// FixedCores: a reservation has the same cores from start to end. A slot for which enough cores are
// free at every instant, but not the same ones, may be refused as busy.
const FixedCores Trait = 1

// Run tests a driver against the contract.
func Run(t *testing.T, open Open, traits ...Trait) {
	for _, c := range []struct {
		name string
		test func(b *bench)
	}{
		{"a granted slot is listed and can be read back", grantedIsListed},
		{"reserving again under the same ID succeeds", reserveAgain},
		{"the same ID with another slot is refused", otherSlot},
		{"more cores than the machine has are refused", tooLarge},
		{"cores that are not free are refused", overAsked},
		{"overlapping slots share the machine", overlapping},
		{"a slot that begins when another ends fits", adjacent},
		{"a released slot is gone, and its cores are free", released},
		{"releasing an unknown slot succeeds", releaseUnknown},
		{"keeping an unknown slot is refused", keepUnknown},
		{"garbage is refused", garbage},
		{"the state after an answer shows its effect", stateAfterAnswer},
		{"whole nodes are nobody else's, or are refused", wholeNodes},
		{"a message of another kind changes nothing", foreign},
		{"no instant is ever oversold", neverOversold},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := start(t, open, t.TempDir())
			b.fixed = slices.Contains(traits, FixedCores)
			c.test(b)
		})
	}
	t.Run("a restart keeps reservations", func(t *testing.T) { restart(t, open) })
}

func grantedIsListed(b *bench) {
	slot := b.slot(0, 1, 1)
	b.granted("r-1", slot)
	b.lists(map[string]protocol.Slot{"r-1": slot})
	kept := b.keep("r-1", slot)
	if !kept.OK {
		b.Fatalf("keep is refused: %+v", kept.Reason)
	}
	b.same(kept.Slot, slot)
}

func reserveAgain(b *bench) {
	slot := b.slot(0, 1, b.capacity)
	b.granted("r-1", slot)
	b.granted("r-1", slot)
	b.lists(map[string]protocol.Slot{"r-1": slot})
}

func otherSlot(b *bench) {
	b.granted("r-1", b.slot(0, 1, 1))
	b.refused("r-1", b.slot(0, 2, 1), protocol.CodeMismatch)
	b.lists(map[string]protocol.Slot{"r-1": b.slot(0, 1, 1)})
}

func tooLarge(b *bench) {
	b.refused("r-1", b.slot(0, 1, b.capacity+1), protocol.CodeSize, protocol.CodeBusy)
	b.lists(nil)
}

func overAsked(b *bench) {
	b.granted("r-1", b.slot(0, 2, b.capacity))
	r := b.reserve("r-2", b.slot(1, 2, 1))
	if r.OK || r.Reason.Code != protocol.CodeBusy || r.Reason.Free != 0 {
		b.Fatalf("OK %v, reason %+v; want busy with 0 free", r.OK, r.Reason)
	}
	b.lists(map[string]protocol.Slot{"r-1": b.slot(0, 2, b.capacity)})
}

func overlapping(b *bench) {
	half := b.capacity / 2
	if half == 0 {
		b.Skip("the machine has one core")
	}
	b.granted("r-1", b.slot(0, 2, half))
	b.granted("r-2", b.slot(1, 2, b.capacity-half))
	b.refused("r-3", b.slot(1, 1, 1), protocol.CodeBusy)
	b.granted("r-4", b.slot(2, 1, half))
	b.refused("r-5", b.slot(0, 4, half+1), protocol.CodeBusy)
}

// wholeNodes takes one core of a node, then all other nodes, then the rest of the first.
func wholeNodes(b *bench) {
	nodes := func(hour, hours, n, each int) protocol.Slot {
		slot := b.slot(hour, hours, n*each)
		slot.Nodes = n
		return slot
	}
	q := b.state()
	if q.NodeCores == 0 {
		b.refused("r-1", nodes(0, 1, 1, 1), protocol.CodeSize)
		b.lists(nil)
		return
	}
	each, all := q.NodeCores, q.Whole[len(q.Whole)-1].Cores
	b.refused("r-1", nodes(0, 1, 1, each+1), protocol.CodeSize)
	b.granted("r-2", b.slot(0, 1, 1))
	b.refused("r-3", nodes(0, 2, all, each), protocol.CodeBusy)
	want := map[string]protocol.Slot{"r-2": b.slot(0, 1, 1), "r-5": nodes(1, 1, all, each)}
	if all > 1 {
		want["r-4"] = nodes(0, 1, all-1, each)
		for range 2 {
			b.granted("r-4", want["r-4"])
		}
		b.same(b.keep("r-4", want["r-4"]).Slot, want["r-4"])
	}
	b.granted("r-5", want["r-5"])
	b.lists(want)
	for _, s := range b.state().Whole {
		if s.Cores > 0 && s.Start.Before(want["r-5"].End) && (s.End.IsZero() || s.End.After(want["r-2"].Start)) {
			b.Fatalf("%d nodes are free from %s to %s", s.Cores, s.Start, s.End)
		}
	}
	if each > 1 {
		b.granted("r-6", b.slot(0, 1, each-1))
	}
	b.refused("r-7", b.slot(0, 1, 1), protocol.CodeBusy)
	b.refused("r-8", b.slot(1, 1, 1), protocol.CodeBusy)
}

func adjacent(b *bench) {
	b.granted("r-1", b.slot(1, 1, b.capacity))
	b.granted("r-2", b.slot(0, 1, b.capacity))
	b.granted("r-3", b.slot(2, 1, b.capacity))
}

func released(b *bench) {
	b.granted("r-1", b.slot(0, 1, b.capacity))
	for range 2 {
		if r := b.release("r-1"); !r.OK {
			b.Fatalf("release is refused: %+v", r.Reason)
		}
	}
	b.lists(nil)
	b.granted("r-2", b.slot(0, 1, b.capacity))
	if kept := b.keep("r-1", b.slot(0, 1, b.capacity)); kept.OK {
		b.Fatal("a released slot is kept")
	}
}

func releaseUnknown(b *bench) {
	if r := b.release("never-made"); !r.OK {
		b.Fatalf("release is refused: %+v", r.Reason)
	}
}

func keepUnknown(b *bench) {
	if kept := b.keep("never-made", b.slot(0, 1, 1)); kept.OK {
		b.Fatal("an unknown slot is kept")
	}
}

func garbage(b *bench) {
	backward := b.slot(0, 1, 1)
	backward.Start, backward.End = backward.End, backward.Start
	past := protocol.Slot{Start: time.Now().Add(-2 * time.Hour), End: time.Now().Add(-time.Hour), Cores: 1}
	for name, r := range map[string]message.Reserve{
		"no cores":       {ID: "r-1", Slot: b.slot(0, 1, 0)},
		"negative cores": {ID: "r-2", Slot: b.slot(0, 1, -5)},
		"too many cores": {ID: "r-3", Slot: b.slot(0, 1, protocol.MaxCores+1)},
		"no time":        {ID: "r-4", Slot: b.slot(0, 0, 1)},
		"backward":       {ID: "r-5", Slot: backward},
		"over":           {ID: "r-6", Slot: past},
		"no ID":          {ID: "", Slot: b.slot(0, 1, 1)},
		"a long ID":      {ID: strings.Repeat("x", 4096), Slot: b.slot(0, 1, 1)},
	} {
		if got := b.reserve(r.ID, r.Slot); got.OK {
			b.Fatalf("%s is granted", name)
		}
	}
	b.lists(nil)
}

func stateAfterAnswer(b *bench) {
	slot := b.slot(0, 1, 1)
	b.granted("r-1", slot)
	changed := await[message.QueueChanged](b) // unrequested
	if len(changed.Reservations) != 1 || changed.Reservations[0].ID != "r-1" || !changed.Reservations[0].Mine {
		b.Fatalf("after the answer the state lists %+v", changed.Reservations)
	}
}

func foreign(b *bench) {
	b.send(protocol.Inform, message.Presence{})
	b.lists(nil)
}

// neverOversold tries random reservations and keeps its own account.
func neverOversold(b *bench) {
	const hours, tries = 6, 60
	rng := rand.New(rand.NewPCG(1, 2))
	live := map[string]protocol.Slot{}
	scattered := 0 // refused since no cores are free throughout
	for i := range tries {
		id := fmt.Sprintf("r-%d", i)
		slot := b.slot(rng.IntN(hours), 1+rng.IntN(3), 1+rng.IntN(b.capacity))
		if rng.IntN(4) == 0 && i > 0 {
			gone := fmt.Sprintf("r-%d", rng.IntN(i))
			b.release(gone)
			delete(live, gone)
		}
		fits := true
		for h := range hours + 3 {
			at := b.slot(h, 1, 1)
			sum := 0
			for _, s := range live {
				if s.Overlaps(at) {
					sum += s.Cores
				}
			}
			fits = fits && (!slot.Overlaps(at) || sum+slot.Cores <= b.capacity)
		}
		r := b.reserve(id, slot)
		apart := b.fixed && fits && r.Reason.Code == protocol.CodeBusy
		if r.OK != fits && !apart {
			b.Fatalf("reservation %d of %+v: OK %v, want %v; %+v", i, slot, r.OK, fits, r.Reason)
		}
		if apart {
			scattered++
		}
		if r.OK {
			live[id] = slot
		}
	}
	if scattered > tries/4 {
		b.Fatalf("%d of %d slots are refused though they fit", scattered, tries)
	}
	b.lists(live)
}

func restart(t *testing.T, open Open) {
	dir := t.TempDir()
	first := start(t, open, dir)
	slot := first.slot(0, 2, first.capacity)
	first.granted("r-1", slot)
	first.granted("r-2", first.slot(2, 1, 1))
	first.release("r-2")
	first.stop()
	second := start(t, open, dir)
	second.lists(map[string]protocol.Slot{"r-1": slot})
	second.refused("r-3", second.slot(1, 1, 1), protocol.CodeBusy)
	second.granted("r-1", slot)
}
