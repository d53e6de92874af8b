package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// Bounds of a Memory.
const (
	MaxBanks     = 256     // in one Memory
	maxSeen      = 64      // heads of one bank: the latest ones
	MaxMemory    = 4 << 20 // octets of the file; MaxBanks banks with one head each, and more
	memoryFormat = 1
)

// Memory has the heads of banks that somebody has seen. Their signatures were verified,
// and they do not contradict each other.
type Memory struct {
	banks map[protocol.AgentID][]Seen // for each, the earliest first
}

// Seen is a head with its signature, which would prove a fork.
type Seen struct {
	contract.Head
	ID  string
	DER []byte
}

type memoryFile struct {
	Version int         `json:"heads"`
	Banks   []bankHeads `json:"banks"`
}

type bankHeads struct {
	Bank  protocol.AgentID `json:"bank"`
	Heads [][]byte         `json:"signed"` // DER, the earliest first
}

// NewMemory is an empty memory.
func NewMemory() *Memory { return &Memory{banks: map[protocol.AgentID][]Seen{}} }

// DecodeMemory reads an encoded memory. It does not verify the heads again: the file
// belongs to its owner.
func DecodeMemory(b []byte) (*Memory, error) {
	if len(b) > MaxMemory {
		return nil, fmt.Errorf("heads: %d bytes, at most %d", len(b), MaxMemory)
	}
	var f memoryFile
	r := json.NewDecoder(bytes.NewReader(b))
	r.DisallowUnknownFields()
	if r.Decode(&f) != nil {
		return nil, fmt.Errorf("not a file of heads, or cut short")
	}
	if f.Version != memoryFormat || len(f.Banks) > MaxBanks || r.More() {
		return nil, fmt.Errorf("heads: version %d with %d banks, want version %d and at most %d", f.Version, len(f.Banks), memoryFormat, MaxBanks)
	}
	m := NewMemory()
	for _, bank := range f.Banks {
		if err := m.read(bank); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Memory) read(b bankHeads) error {
	if len(b.Heads) < 1 || len(b.Heads) > maxSeen || m.banks[b.Bank] != nil {
		return fmt.Errorf("heads of %s: %d, want 1..%d, and each bank once", b.Bank, len(b.Heads), maxSeen)
	}
	var last contract.Head
	for _, der := range b.Heads {
		h, id, err := contract.ReadHead(der)
		if err != nil {
			return fmt.Errorf("heads of %s: %w", b.Bank, err)
		}
		if h.Bank != b.Bank || h.Size < last.Size || h.Time.Before(last.Time) {
			return fmt.Errorf("heads of %s: a head of %s of size %d after one of size %d", b.Bank, h.Bank, h.Size, last.Size)
		}
		m.banks[b.Bank] = append(m.banks[b.Bank], Seen{h, id, der})
		last = h
	}
	return nil
}

// Encode writes the memory, banks in order.
func (m *Memory) Encode() ([]byte, error) {
	f := memoryFile{Version: memoryFormat, Banks: []bankHeads{}}
	for id, seen := range m.banks {
		b := bankHeads{Bank: id}
		for _, s := range seen {
			b.Heads = append(b.Heads, s.DER)
		}
		f.Banks = append(f.Banks, b)
	}
	slices.SortFunc(f.Banks, func(a, b bankHeads) int { return bytes.Compare([]byte(a.Bank), []byte(b.Bank)) })
	return json.MarshalIndent(f, "", " ")
}

// Last is the latest head of a bank.
func (m *Memory) Last(bank protocol.AgentID) (Seen, bool) {
	s := m.banks[bank]
	if len(s) == 0 {
		return Seen{}, false
	}
	return s[len(s)-1], true
}

// Count is the number of heads of a bank.
func (m *Memory) Count(bank protocol.AgentID) int { return len(m.banks[bank]) }

// Only is the memory of one bank.
func (m *Memory) Only(bank protocol.AgentID) *Memory {
	return &Memory{map[protocol.AgentID][]Seen{bank: slices.Clone(m.banks[bank])}}
}

// First is a memory with only the first n heads of one bank, and all heads of the others.
func (m *Memory) First(bank protocol.AgentID, n int) *Memory {
	first := &Memory{maps.Clone(m.banks)}
	first.banks[bank] = slices.Clone(m.banks[bank][:n])
	if n == 0 {
		delete(first.banks, bank)
	}
	return first
}

// Judge checks a head that a bank shows, with the proof of growth from a head of size
// from. Without an error the log has only grown since all earlier heads, and a newer
// head is remembered. An ErrFork comes as a *Fork.
func (m *Memory) Judge(h contract.VerifiedHead, from uint64, growth [][]byte) error {
	if !h.Checked() {
		return fmt.Errorf("%w: the head of %s was not verified", ErrProof, h.Bank)
	}
	seen := m.banks[h.Bank]
	for _, s := range slices.Backward(seen) {
		if s.ID == h.ID {
			return nil // seen before
		}
		if s.Size == h.Size && s.Root != h.Root {
			return &Fork{s, remembered(h)}
		}
	}
	if len(seen) > 0 {
		if err := follows(seen, h, from, growth); err != nil {
			return err
		}
	}
	return m.remember(h)
}

// Newest is Judge for the head that a bank presents as its newest. A head older than
// those in memory is an ErrShrunk: the bank went back.
func (m *Memory) Newest(h contract.VerifiedHead, from uint64, growth [][]byte) error {
	if last, ok := m.Last(h.Bank); ok && (h.Size < last.Size || h.Time.Before(last.Time)) {
		return fmt.Errorf("%w: it has %d entries at %s, it had %d at %s", ErrShrunk, h.Size, stamp(h.Head), last.Size, stamp(last.Head))
	}
	return m.Judge(h, from, growth)
}

func stamp(h contract.Head) string { return h.Time.Format(time.RFC3339Nano) }

// follows checks a head against the latest one in memory.
func follows(seen []Seen, h contract.VerifiedHead, from uint64, growth [][]byte) error {
	last := seen[len(seen)-1]
	switch {
	case h.Size < last.Size && h.Time.After(last.Time):
		return fmt.Errorf("%w: it has %d entries at %s, it had %d at %s", ErrShrunk, h.Size, stamp(h.Head), last.Size, stamp(last.Head))
	case h.Size > last.Size && h.Time.Before(last.Time):
		return &Fork{last, remembered(h)} // a longer log at an earlier time
	case h.Size == last.Size:
		return nil // the roots are equal, as compared above
	case h.Size < last.Size:
		return older(seen, h)
	case from != last.Size:
		return fmt.Errorf("%w: the proof begins at %d entries, the last head seen has %d", ErrUnknown, from, last.Size)
	}
	return VerifyGrowth(last.Head, h.Head, growth)
}

// older checks a head from before the latest one, by those of the same size.
func older(seen []Seen, h contract.VerifiedHead) error {
	for _, s := range seen {
		if s.Size == h.Size {
			return nil
		}
	}
	return fmt.Errorf("%w: the head of %d entries is older than the last one seen, of %d", ErrUnknown, h.Size, seen[len(seen)-1].Size)
}

func remembered(h contract.VerifiedHead) Seen { return Seen{h.Head, h.ID, h.DER} }

// remember keeps a head that is newer than all others. At the bound it drops the oldest.
func (m *Memory) remember(h contract.VerifiedHead) error {
	seen := m.banks[h.Bank]
	if len(seen) == 0 && len(m.banks) >= MaxBanks {
		return fmt.Errorf("heads of %d banks are remembered, which is the most", MaxBanks)
	}
	if n := len(seen); n > 0 && (h.Size < seen[n-1].Size || h.Time.Before(seen[n-1].Time)) {
		return nil
	}
	seen = append(seen, remembered(h))
	m.banks[h.Bank] = seen[max(0, len(seen)-maxSeen):]
	return nil
}

// Fork is the evidence of a fork: two heads with their signatures.
type Fork struct {
	Seen, Shown Seen
}

// Error names both heads. It is an ErrFork.
func (f *Fork) Error() string {
	return fmt.Sprintf("%s: %s signed %d entries with root %s at %s, and %d entries with root %s at %s", ErrFork, f.Seen.Bank,
		f.Seen.Size, f.Seen.Root, stamp(f.Seen.Head), f.Shown.Size, f.Shown.Root, stamp(f.Shown.Head))
}

// Unwrap is ErrFork.
func (f *Fork) Unwrap() error { return ErrFork }

// Fresh checks that a head is no older than an age allows, nor by as much of the future.
func Fresh(h contract.Head, now time.Time, age time.Duration) error {
	if old := now.Sub(h.Time); old > age || old < -age {
		return fmt.Errorf("%w: it was signed at %s, now is %s, want at most %s between them", ErrStale, h.Time.Format(time.RFC3339), now.Format(time.RFC3339), age)
	}
	return nil
}
