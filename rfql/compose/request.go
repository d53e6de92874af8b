package compose

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/rfql"
)

// And is the word that begins another unit: a copy of the last one, or with the value
// fresh an empty one.
const And Word = "and"

const fresh = "fresh"

// Said is a word as it was given.
type Said struct {
	Word  Word
	Value string
	Where string // in front of its faults: --cores, or job.yaml:3: cores
}

// Faults are all that is wrong with the words of a file.
type Faults []error

func (f Faults) Error() string { return f.In("") }

// In prints one fault per line. Each has its file already.
func (f Faults) In(string) string {
	lines := make([]string, len(f))
	for i, err := range f {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Request is what a job file and the flags of a command ask for. The flags of a command
// change every unit of the file.
type Request struct {
	File, Flags []Said
	Begin       time.Duration // within which a unit without an end begins; 0: it must have one
	Slots       int           // units like the only one, for an array; 0: no array
	Turns       int           // how many indexes of the array each of them takes

	built *Builder // once
}

// Anew forgets what was built, since a field changes.
func (r *Request) Anew() { r.built = nil }

// Given reports whether anything was asked for.
func (r *Request) Given() bool { return len(r.File) > 0 || len(r.Flags) > 0 }

// Words are the words of the request, equal for equal requests.
func (r *Request) Words() []string {
	var list []string
	for _, s := range append(append([]Said{}, r.File...), r.Flags...) {
		list = append(list, string(s.Word)+"="+s.Value)
	}
	return list
}

// Builder has the units of the request. Relative times count from now. Each fault is an
// error of one line.
func (r *Request) Builder(now time.Time) (*Builder, error) {
	if r.built != nil {
		return r.built, nil
	}
	b := New(now)
	var faults Faults
	for i, s := range r.File {
		if err := b.say(s, i == 0); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	if err := oneOfEach(r.Flags); err != nil {
		return nil, err
	}
	for i, s := range r.Flags {
		set := b.say
		if len(r.File) > 0 {
			set = b.sayAll
		}
		if err := set(s, i == 0); err != nil {
			return nil, err // the others may follow from it
		}
	}
	if r.Begin > 0 {
		if err := b.repeat(r.Slots, r.Turns); err != nil {
			return nil, err
		}
		b.BeginWithin(r.Begin)
	}
	r.built = b
	return b, nil
}

// oneOfEach rejects two flags of a unit that replace each other.
func oneOfEach(flags []Said) error {
	other := map[Word]Word{Cores: Nodes, Nodes: Cores, Within: By, By: Within, Disk: NodeDisk, NodeDisk: Disk}
	given := map[Word]Said{}
	for _, s := range flags {
		if first, ok := given[other[s.Word]]; ok {
			return fmt.Errorf("%s and %s: give one of them", first.Where, s.Where)
		}
		if s.Word == And {
			clear(given)
		} else if s.Value != Any {
			given[s.Word] = s
		}
	}
	return nil
}

// say takes a word for the last unit.
func (b *Builder) say(s Said, first bool) error {
	var err error
	switch {
	case s.Word != And:
		err = b.Set(s.Word, s.Value)
	case first:
		err = errors.New("comes between two units: describe the first one before it")
	default:
		err = b.And()
		if last := len(b.units) - 1; err == nil && s.Value == fresh {
			b.units[last], b.ends[last] = rfql.DraftRequest{}, ""
		}
	}
	if err != nil {
		return fmt.Errorf("%s %w", s.Where, err)
	}
	return nil
}

// sayAll takes a word for every unit.
func (b *Builder) sayAll(s Said, _ bool) error {
	if s.Word == And {
		return fmt.Errorf("%s: describe all units in the file, or all of them in flags", s.Where)
	}
	for i := range b.units {
		if err := b.set(i, s.Word, s.Value); err != nil {
			return fmt.Errorf("%s %w", s.Where, err)
		}
	}
	return nil
}

// repeat makes the only unit the slots of an array: each runs so many indexes, one after the other.
func (b *Builder) repeat(slots, turns int) error {
	if slots == 0 {
		return nil
	}
	if len(b.units) > 1 {
		return errors.New("an array has one unit for each index: leave out the others")
	}
	if b.units[0].Wall == 0 {
		return errors.New("an array needs --wall: how long an index may take")
	}
	if b.units[0].Wall > rfql.MaxWall/time.Duration(turns) {
		return fmt.Errorf("%d indexes of %s, one after the other, exceed the longest slot", turns, b.units[0].Wall)
	}
	b.units[0].Wall *= time.Duration(turns)
	for len(b.units) < slots {
		if err := b.And(); err != nil {
			return err
		}
	}
	return nil
}

// Wall is how long the only unit may take; 0: it is not said, or there are several.
func (r *Request) Wall(now time.Time) (time.Duration, error) {
	b, err := (&Request{File: r.File, Flags: r.Flags}).Builder(now)
	if err != nil || len(b.units) > 1 {
		return 0, err
	}
	return b.units[0].Wall, nil
}

// Cores are those of the first unit; 0: it does not say.
func (r *Request) Cores(now time.Time) int {
	b, err := (&Request{File: r.File, Flags: r.Flags}).Builder(now)
	if err != nil {
		return 0
	}
	return max(b.units[0].TotalCores, b.units[0].NodeCount*b.units[0].NodeCores)
}

// Document is what the request asks for. start is the earliest instant at which a job
// could start, as for rfql.Check.
func (r *Request) Document(now, start time.Time, o protocol.Objective) (rfql.Document, error) {
	b, err := r.Builder(now)
	if err != nil {
		return rfql.Document{}, err
	}
	doc, err := b.Document(start, o)
	if err != nil {
		return doc, fmt.Errorf("cannot make the request: %w", err)
	}
	return doc, nil
}

// FileWords are the words of a job file: each unit is described by those of the job and its own.
func FileWords(job []Said, units [][]Said) []Said {
	if len(units) == 0 {
		return job
	}
	var list []Said
	for i, unit := range units {
		if i > 0 {
			list = append(list, Said{Word: And, Value: fresh})
		}
		list = append(append(list, job...), unit...)
	}
	return list
}

// IsWord reports whether a flag describes a unit.
func IsWord(flag string) bool { return slices.Contains(Words(), Word(flag)) }
