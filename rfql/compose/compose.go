// Package compose builds a request for quotation from flags in units that people use: 256
// cores, 2h, 4G, until tomorrow 18:00.
//
// A Builder takes one flag after the other, in the order of a command line. And begins
// another unit with the same values as the previous one, which later flags change. The
// clock is a parameter; the package never reads one.
package compose

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/rfql"
)

// Word names a property of a unit. Its text is the flag of the commands, without dashes.
type Word string

// The words.
const (
	Cores       Word = "cores"       // 256
	Nodes       Word = "nodes"       // 4x16: whole nodes
	Wall        Word = "wall"        // 2h, 90m, 1d, 02:00:00
	Within      Word = "within"      // 12h: must end by then, from now
	By          Word = "by"          // a time: must end by then
	NotBefore   Word = "not-before"  // a time, or +3h
	MaxPrice    Word = "max-price"   // credits per core-hour; without it the sites' list prices count
	RAM         Word = "ram"         // per core: 2G
	Disk        Word = "disk"        // in total: 500G
	NodeDisk    Word = "node-disk"   // on each node: 50G
	CPUSpeed    Word = "cpu-speed"   // 2.4GHz, 2400
	Bandwidth   Word = "bandwidth"   // between nodes: 10G
	OS          Word = "os"          // Linux
	OSVersion   Word = "os-version"  // 5
	Arch        Word = "arch"        // x86_64
	Name        Word = "name"        // for people
	Application Word = "application" // to run
	SameStart   Word = "same-start"  // of the whole request: true or false
)

// Words are all words, in the order of the help.
func Words() []Word {
	return []Word{
		Cores, Nodes, Wall, Within, By, NotBefore, MaxPrice,
		RAM, Disk, NodeDisk, CPUSpeed, Bandwidth, OS, OSVersion, Arch, Name, Application, SameStart,
	}
}

// Any is the value that removes a requirement of the previous unit.
const Any = "any"

// Builder collects the units of a request.
type Builder struct {
	now    time.Time
	zone   *time.Location // of times that name none
	units  []rfql.DraftRequest
	ends   []string // the flag that sets the end of each unit
	moving bool
	same   bool // all units begin together
}

// New begins a request with one unit. Relative times count from now, in whole seconds, and
// times that name no zone are in that of now.
func New(now time.Time) *Builder {
	return &Builder{zone: now.Location(), now: now.UTC().Truncate(time.Second), units: make([]rfql.DraftRequest, 1), ends: make([]string, 1)}
}

// And begins another unit, a copy of the last one. It fails at protocol.MaxUnits.
func (b *Builder) And() error {
	if len(b.units) == protocol.MaxUnits {
		return fmt.Errorf("more than %d units", protocol.MaxUnits)
	}
	b.units = append(b.units, b.units[len(b.units)-1])
	b.ends = append(b.ends, b.ends[len(b.ends)-1])
	return nil
}

// BeginWithin lets every unit without an end begin within d, counted from now or from its
// earliest start. A unit with a start and without a wall time would last until its end,
// so it must have an end.
func (b *Builder) BeginWithin(d time.Duration) {
	for i := range b.units {
		u := &b.units[i]
		if !u.End.IsZero() || u.Wall == 0 && !u.NotBefore.IsZero() {
			continue
		}
		from := b.now
		if u.NotBefore.After(from) {
			from = u.NotBefore
		}
		u.End, b.moving = from.Add(u.Wall+d), true
	}
}

// Moving reports whether the request has a relative time, so that the same words give
// another document a second later.
func (b *Builder) Moving() bool { return b.moving }

// Set sets a property of the last unit and replaces an earlier value. The error names the
// value and the allowed ones, without the word itself.
func (b *Builder) Set(w Word, value string) error { return b.set(len(b.units)-1, w, value) }

func (b *Builder) set(i int, w Word, value string) error {
	if len(value) > maxValue {
		return fmt.Errorf("%d bytes: want at most %d", len(value), maxValue)
	}
	u := &b.units[i]
	switch w {
	case Cores, Nodes:
		return setCores(u, w, value)
	case Wall:
		return keep(&u.Wall)(wallTime(value))
	case Within, By, NotBefore:
		return b.setTime(i, w, value)
	case MaxPrice:
		return keep(&u.Price)(price(value))
	case SameStart:
		return keep(&b.same)(strconv.ParseBool(value))
	case RAM, Disk, NodeDisk, CPUSpeed, Bandwidth:
		return setSize(u, w, value)
	}
	return setWord(u, w, value)
}

// maxValue bounds one value, in bytes; the longest name is shorter.
const maxValue = 512

// keep stores a parsed value unless parsing failed.
func keep[T any](into *T) func(v T, err error) error {
	return func(v T, err error) error {
		if err == nil {
			*into = v
		}
		return err
	}
}

func setCores(u *rfql.DraftRequest, w Word, value string) error {
	if w == Nodes {
		n, each, err := nodes(value)
		if err == nil {
			u.TotalCores, u.NodeCount, u.NodeCores = 0, n, each
		}
		return err
	}
	n, err := count(value)
	if err == nil {
		u.TotalCores, u.NodeCount, u.NodeCores = n, 0, 0
	}
	return err
}

func (b *Builder) setTime(i int, w Word, value string) error {
	u := &b.units[i]
	if w == NotBefore && value == Any {
		u.NotBefore = time.Time{}
		return nil
	}
	if w == Within {
		d, err := Duration(value)
		if err == nil {
			u.End, b.moving, b.ends[i] = b.now.Add(d), true, "--within "+value
		}
		return err
	}
	t, moving, err := instant(value, b.now.In(b.zone))
	if err != nil {
		return err
	}
	b.moving = b.moving || moving
	if w == By {
		u.End, b.ends[i] = t, "--by "+value
	} else {
		u.NotBefore = t
	}
	return nil
}

// setSize sets a number with a unit of measure. The last of the two kinds of disk counts.
func setSize(u *rfql.DraftRequest, w Word, value string) error {
	into, parse := map[Word]*int{
		RAM: &u.RAMPerCore, Disk: &u.TotalDisk, NodeDisk: &u.NodeDisk, CPUSpeed: &u.CPUSpeed, Bandwidth: &u.Bandwidth,
	}[w], map[Word]scale{RAM: megabytes, Disk: gigabytes, NodeDisk: gigabytes, CPUSpeed: megahertz, Bandwidth: megabits}[w]
	n := 0
	if value != Any {
		var err error
		if n, err = parse.read(value); err != nil {
			return err
		}
	}
	switch w {
	case Disk:
		u.NodeDisk = 0
	case NodeDisk:
		u.TotalDisk = 0
	}
	*into = n
	return nil
}

func setWord(u *rfql.DraftRequest, w Word, value string) error {
	into := map[Word]*string{
		OS: &u.OS, OSVersion: &u.OSVersion, Arch: &u.Arch, Name: &u.Name, Application: &u.Application,
	}[w]
	if into == nil {
		return fmt.Errorf("unknown word %q", w)
	}
	if value == "" || strings.TrimSpace(value) != value {
		return fmt.Errorf("%q: want a word, or %q", value, Any)
	}
	if *into = value; value == Any {
		*into = ""
	}
	return nil
}

// Document checks the request. start is the earliest instant at which a job could start,
// as for rfql.Check.
func (b *Builder) Document(start time.Time, o protocol.Objective) (rfql.Document, error) {
	for i, u := range b.units {
		if missing := missing(u); len(missing) > 0 {
			return rfql.Document{}, fmt.Errorf("%smissing %s", b.unit(i), strings.Join(missing, ", "))
		}
	}
	doc, err := rfql.Check(rfql.Draft{Objective: o, SameStart: b.same, Requests: b.units}, start)
	var faults rfql.Faults
	if errors.As(err, &faults) {
		return doc, b.fault(faults[0], start)
	}
	return doc, err
}

// unit names a unit if there are several.
func (b *Builder) unit(i int) string {
	if len(b.units) == 1 || i < 0 {
		return ""
	}
	return fmt.Sprintf("unit %d: ", i+1)
}

func missing(u rfql.DraftRequest) []string {
	var list []string
	need := func(lacks bool, flag string) {
		if lacks {
			list = append(list, flag)
		}
	}
	need(u.TotalCores == 0 && u.NodeCount == 0, "--cores N (or --nodes)")
	need(u.Wall == 0 && u.NotBefore.IsZero(), "--wall 2h")
	need(u.End.IsZero(), "--within 12h (or --by)")
	return list
}

// fault converts a fault of the document to the flags of the command line.
func (b *Builder) fault(f rfql.Fault, start time.Time) error {
	names := map[rfql.Term]string{
		rfql.CPUHourCost: "--max-price", rfql.EndDate: "--within or --by", rfql.EndTime: "--within or --by",
		rfql.StartDate: "--not-before", rfql.StartTime: "--not-before", rfql.WallTime: "--wall",
		rfql.OperatingSystem: "--os", rfql.OSVersion: "--os-version", rfql.Architecture: "--arch",
		rfql.Nodes: "--nodes", rfql.TotalCores: "--cores", rfql.Name: "--name", rfql.Application: "--application",
	}
	name := cmp.Or(names[f.Term], string(f.Term))
	if f.Term == rfql.WallTime && f.Class == rfql.Meaning {
		return fmt.Errorf("%s%s", b.unit(f.Request), b.tooLong(max(0, f.Request), start))
	}
	return fmt.Errorf("%s%s: found %s; allowed %s", b.unit(f.Request), name, f.Found, f.Allowed)
}

// tooLong describes a wall time that does not fit between the earliest start and the end.
func (b *Builder) tooLong(i int, start time.Time) string {
	u := b.units[i]
	wall := strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(u.Wall.String())
	words := fmt.Sprintf("--wall %s does not fit into %s", wall, b.ends[i])
	switch {
	case u.NotBefore.After(start):
		words += " after --not-before"
	case u.End.Sub(b.now) >= u.Wall:
		words += ", since buying takes " + start.Sub(b.now).Round(time.Second).String()
	}
	return words
}
