package mesh

import (
	"bufio"
	"bytes"
	"slices"
	"time"
)

// What the tests of package mesh_test see of the inside.
const (
	ReplayWindow, StrangersNamed, MaxPresence        = replayWindow, strangersNamed, maxPresence
	StreamsPerPeer, StreamsPerKind                   = streamsPerPeer, streamsPerKind
	ProtocolACL, ProtocolPresence                    = protocolACL, protocolPresence
	ProtocolClock, ProtocolFiles                     = protocolClock, protocolFiles
	ProtocolEnrolment, ProtocolIntroductions         = protocolEnrolment, protocolIntroductions
	MaxStrangers, StreamsPerStranger, StrangerMemory = maxStrangers, streamsPerStranger, strangerMemory
)

// SilenceWords says of a time that ran out what it was for.
func SilenceWords(err error) error { return silence(err) }

type Window struct{ w window }

func (w *Window) Admit(n uint64) bool { return w.w.admit(n) }

type Bucket struct{ b bucket }

func (b *Bucket) Take(now time.Time, n float64, r Rate) bool { return b.b.take(now, n, r) }

type forever struct{}

func (forever) SetReadDeadline(time.Time) error { return nil }

// ReadFrame reads a frame from bytes.
func ReadFrame(b []byte, limit int) ([]byte, error) {
	return readFrame(forever{}, bufio.NewReader(bytes.NewReader(b)), limit)
}

// Recode decodes a card or introductions and encodes them again.
func RecodeCard(b []byte) ([]byte, error) { c, err := decodeCard(b); return c.encode(), err }

func RecodeIntroductions(b []byte) ([]byte, error) {
	all, err := decodeIntroductions(b)
	return encodeIntroductions(all), err
}

// CrowdOut drops strangers while there are more than most, and counts them.
func CrowdOut(m *Mesh, most int) (dropped int) {
	for s := m.ep.strangers; ; dropped++ {
		s.mu.Lock()
		lost := s.crowdedOut(most, func(x *stranger) bool { return x.peer != "" })
		s.mu.Unlock()
		if lost == nil {
			return dropped
		}
		hangUp(lost)
	}
}

// Strangers counts the secured connections without a credential that have a place.
func Strangers(m *Mesh) int {
	s := m.ep.strangers
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(s.waiting), func(x *stranger) bool { return x.peer == "" }))
}
