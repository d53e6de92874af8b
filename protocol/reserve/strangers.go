package reserve

import (
	"slices"
	"strconv"
	"strings"

	"ramp/protocol"
	"ramp/protocol/message"
)

// strangers are reservations with the seller's mark that its journal lacks.
//
// The seller saves a reservation before it asks for it. So the journal has forgotten a stranger,
// because it was never sold, and the batch system has brought it back or never released it; then
// the seller releases it. But if the stranger is newer than the journal, the journal was lost or
// restored, and a bank may have a contract for it. Then the seller leaves it alone, and the batch
// system counts it as busy, until the banks know of no contract that could still appear; or until
// its end, if the seller trusts its journal and does not ask.
type strangers struct {
	trust     bool // TrustJournal
	banks     *inquiries
	deals     *deals
	left      map[string]protocol.Slot // left alone
	freed     map[string]bool          // freed and forgotten since the start
	forgotten uint64                   // highest number in the journal at the start
}

// found deals with a stranger that the batch system lists.
func (s *strangers) found(t *turn, r message.QueueReservation) {
	_, noted := s.left[r.ID]
	n, ok := counterOf(r.ID)
	switch {
	case s.freed[r.ID], s.banks.certain(), !noted && ok && s.forgot(n):
		t.queue(message.Release{ID: r.ID})
		return
	case noted || len(s.left) >= maxStrangers:
		return // beyond the bound the seller leaves it alone as well
	}
	s.deals.avoid(r.ID)
	s.left[r.ID] = r.Slot
	t.save(strangerRecord(r.ID, &r.Slot))
}

// forgot reports whether the journal once had a reservation and forgot it, because it was not sold.
func (s *strangers) forgot(n uint64) bool {
	if s.trust {
		return n <= s.deals.counter
	}
	return n <= s.forgotten && !s.banks.asOf().IsZero()
}

// counterOf returns the number at the end of a reservation's ID.
func counterOf(id string) (uint64, bool) {
	n, err := strconv.ParseUint(id[strings.LastIndexByte(id, '-')+1:], 10, 63)
	return n, err == nil
}

// forget drops a stranger, if it is one.
func (s *strangers) forget(t *turn, id string) {
	if _, ok := s.left[id]; ok {
		delete(s.left, id)
		t.save(strangerRecord(id, nil))
	}
}

// which lists the strangers whose slot satisfies f, in order of ID.
func (s *strangers) which(f func(protocol.Slot) bool) []string {
	var ids []string
	for id, slot := range s.left {
		if f(slot) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// expire drops the strangers whose slot is over.
func (s *strangers) expire(t *turn) {
	for _, id := range s.which(func(slot protocol.Slot) bool { return !slot.End.After(t.now) }) {
		s.forget(t, id)
	}
}

// release frees all strangers, once the banks have no contract for any of them.
func (s *strangers) release(t *turn) {
	clear(s.freed)
	for _, id := range s.which(func(protocol.Slot) bool { return true }) {
		s.forget(t, id)
		t.queue(message.Release{ID: id})
	}
}

// sweep remembers that this process freed a reservation, while one that the journal lacks might
// still be sold. Beyond the bound, such a reservation is left alone if it reappears.
func (s *strangers) sweep(id string) {
	if !s.trust && !s.banks.certain() && len(s.freed) < maxFreed {
		s.freed[id] = true
	}
}
