package forecast

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// ErrState is wrapped by the errors of Decode for bytes that Encode did not write.
var ErrState = errors.New("not the state of a forecast")

// stateVersion is the first byte of a state.
const stateVersion = 1

// maxCount bounds the counters of a state.
const maxCount = 1 << 56

// Encode returns the forecast as bytes: at most 800 kB, usually a tenth of that. Equal
// forecasts have equal bytes.
//
//	version, 4 × waits, 4 × runs, 4 × (told, held)
//	a history: changes, missed, number, observations from the oldest on
//
// The version is one byte; all others are unsigned varints.
func (f *Forecast) Encode() []byte {
	b := []byte{stateVersion}
	for _, kind := range []*[Clusters]Series{&f.waits, &f.runs} {
		for i := range kind {
			b = kind[i].encode(b)
		}
	}
	for _, s := range f.scores {
		b = binary.AppendUvarint(b, uint64(s.Told))
		b = binary.AppendUvarint(b, uint64(s.Held))
	}
	return b
}

func (s *Series) encode(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(s.changes))
	b = binary.AppendUvarint(b, uint64(s.missed))
	b = binary.AppendUvarint(b, uint64(s.recent.size))
	for i := range s.recent.size {
		b = binary.AppendUvarint(b, uint64(s.recent.get(i)))
	}
	return b
}

// Decode reads a forecast that Encode wrote, and which then behaves like the original.
// Errors wrap ErrState.
func Decode(b []byte) (*Forecast, error) {
	if len(b) == 0 || b[0] != stateVersion {
		return nil, fmt.Errorf("forecast: want version %d: %w", stateVersion, ErrState)
	}
	f, r := &Forecast{}, reader{rest: b[1:]}
	for _, kind := range []*[Clusters]Series{&f.waits, &f.runs} {
		for i := range kind {
			r.series(&kind[i])
		}
	}
	for i := range f.scores {
		told := r.number("told", maxCount)
		f.scores[i] = Score{told, r.number("held", told)}
	}
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("forecast: %d bytes too many: %w", len(r.rest), ErrState)
	}
	if r.err != nil {
		return nil, r.err
	}
	return f, nil
}

// reader takes numbers off the front; after the first error it returns zeros.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) number(what string, most int64) int64 {
	if r.err != nil {
		return 0
	}
	x, n := binary.Uvarint(r.rest)
	if n <= 0 || n != max(1, (bits.Len64(x)+6)/7) || x > uint64(most) {
		r.err = fmt.Errorf("forecast: %s: want a number up to %d: %w", what, most, ErrState)
		return 0
	}
	r.rest = r.rest[n:]
	return int64(x)
}

func (r *reader) series(s *Series) {
	s.changes = int(r.number("changes", maxCount))
	missed := r.number("missed", MaxHistory)
	for range r.number("observations", MaxHistory) {
		x := r.number("observation", MaxValue)
		if r.err != nil {
			return
		}
		s.push(x)
	}
	s.missed = int(missed)
}
