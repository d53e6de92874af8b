package sim

import (
	"cmp"
	"slices"
	"time"

	"ramp/protocol"
)

// injector owns the fault rates of a run, drawn from the seed, and whether faults go on. It
// injects them into the hosts and the network of its world.
type injector struct {
	world   *World
	faults  Faults
	crashes Chance // faults at outputs and disks
	chance  Chance // faults from time to time
	rewinds rewinds
	stopped bool

	crashRate  int // per 100,000 outputs
	offClock   int // percent of the hosts
	partitions int // per day, like those below
	stalls     int
	outages    int
	takeOvers  int
	fullDisk   int
}

// newInjector draws the faults of a run, those of its network included, and plans the
// first of each kind.
func newInjector(w *World, seed uint64, f Faults) *injector {
	c := NewChance(seed, 1)
	w.net = newNetwork(seed, f, c)
	in := &injector{
		world: w, faults: f, crashes: NewChance(seed, 2), chance: c, crashRate: c.In(f.Crashes), offClock: c.In(f.OffClock),
		partitions: c.In(f.Partitions), stalls: c.In(f.Stalls), outages: c.In(f.Outages), fullDisk: c.In(f.FullDisk),
		takeOvers: c.In(f.TakeOvers),
	}
	in.often(in.partitions, in.part)
	in.often(in.stalls, in.stall)
	in.often(in.outages, in.outage)
	in.often(in.fullDisk, in.fill)
	in.often(in.takeOvers, in.depose)
	in.beginRewinds(NewChance(seed, streamRewinds))
	in.beginJumps(NewChance(seed, streamJumps))
	return in
}

// often calls f so many times a day, at random, until the faults are stopped.
func (in *injector) often(perDay int, f func()) {
	if perDay == 0 {
		return
	}
	in.world.After(in.chance.Waiting(24*time.Hour/time.Duration(perDay)), func() {
		if in.stopped {
			return
		}
		f()
		in.often(perDay, f)
	})
}

// stop heals partitions, empties full disks, sets the clocks that jumped right and starts
// the hosts that are down. Clocks that were wrong from the beginning stay as they are.
func (in *injector) stop() {
	in.stopped = true
	in.world.net.parted, in.world.net.stalled = nil, map[stall]time.Duration{}
	for _, h := range in.world.hosts {
		h.disk.full = false
		h.SetClock(0)
		if !h.up {
			in.world.plan(time.Second, event{kind: starts, host: h})
		}
	}
}

// quiet reports whether there are no faults, because they have not begun or were stopped.
func (in *injector) quiet() bool { return in.stopped || in.world.now < in.world.cfg.Peace }

// setClock decides how far a host's clock is off, and how fast it goes.
func (in *injector) setClock(h *Host) {
	c := in.chance
	off, offset, drift := c.N(100) < in.offClock, c.For(in.faults.Offset), c.In(in.faults.Drift)
	if off && !h.Steady {
		h.offset, h.drift = offset, int64(drift)
	}
}

// streamJumps is the stream of chance for clocks that are set.
const streamJumps = 6

func (in *injector) beginJumps(c Chance) {
	in.often(c.In(in.faults.Jumps), func() {
		h, by := in.world.hosts[c.N(len(in.world.hosts))], c.For(in.faults.Jump)
		switch {
		case h.Steady:
		case h.jumped == 0:
			h.SetClock(by)
		default:
			h.SetClock(0)
		}
	})
}

// victim picks a host for a fault; nil if faults spare it.
func (in *injector) victim() *Host {
	if len(in.world.hosts) == 0 {
		return nil
	}
	if h := in.world.hosts[in.chance.N(len(in.world.hosts))]; !h.Steady {
		return h
	}
	return nil
}

// part partitions the network.
func (in *injector) part() {
	c := in.chance
	p := parting{until: in.world.now + c.Skewed(in.faults.Parted), inside: map[int]bool{}}
	p.inTo, p.outTo = true, true
	switch c.N(3) {
	case 0:
		p.inTo = false
	case 1:
		p.outTo = false
	}
	for range 1 + c.N(max(1, len(in.world.hosts)/2)) {
		p.inside[c.N(len(in.world.hosts))] = true
	}
	current := slices.DeleteFunc(in.world.net.parted, func(old parting) bool { return old.until <= in.world.now })
	in.world.net.parted = append(current, p)
}

// stall stops a link for a while.
func (in *injector) stall() {
	c := in.chance
	s := stall{c.N(len(in.world.hosts)), c.N(len(in.world.hosts))}
	for old, until := range in.world.net.stalled {
		if until <= in.world.now {
			delete(in.world.net.stalled, old)
		}
	}
	in.world.net.stalled[s] = in.world.now + c.Skewed(in.faults.Stalled)
}

// outage crashes a host, whatever it is doing.
func (in *injector) outage() {
	if h := in.victim(); h != nil {
		h.crash(in.downtime())
	}
}

// depose has the standbys take over, whether or not their leaders are up.
func (in *injector) depose() {
	for _, h := range in.world.hosts {
		if h.other != nil && in.world.Leader(h.ID()) != h {
			h.takeOver()
		}
	}
}

// fill fills a host's disk for a while.
func (in *injector) fill() {
	h := in.victim()
	if h == nil {
		return
	}
	h.disk.full = true
	in.world.After(in.chance.Skewed(in.faults.Full), func() { h.disk.full = false })
}

// downtime is how long a crashed host stays down.
func (in *injector) downtime() time.Duration {
	if in.world.hooks.Crash != nil || in.quiet() { // a crash that was drawn before the faults stopped
		return cmp.Or(in.world.hooks.Down, time.Second)
	}
	return in.crashes.Skewed(in.faults.Down)
}

// torn is how much of a frame of n bytes a crash leaves: nothing, a part, or all.
func (in *injector) torn(n int) int {
	switch in.crashes.N(3) {
	case 0:
		return 0
	case 1:
		return in.crashes.N(n)
	}
	return n
}

// crashPoint decides whether, and where, a host crashes at an Output.
func (in *injector) crashPoint(h *Host, out protocol.Output) Point {
	switch {
	case in.world.hooks.Crash != nil:
		return in.world.hooks.Crash(Boundary{h, h.output, out})
	case h.Steady || in.quiet():
	case in.crashRate > 0 && in.crashes.N(100_000) < in.crashRate:
		return Point(1 + in.crashes.N(4))
	}
	return Survives
}

// Rewinder is an Observer that also learns when a host's disk was lost or restored from
// an older copy.
type Rewinder interface {
	Rewound(h *Host)
}

// streamRewinds is the stream of chance for lost and restored disks.
const streamRewinds = 5

// copyEvery is the mean number of writes between copies of a host's disk. Counting writes
// puts most copies into busy times.
const copyEvery = 20

// rewinds is how often a disk is lost or restored from a copy.
type rewinds struct {
	chance Chance
	perDay int
}

func (in *injector) beginRewinds(c Chance) {
	in.rewinds = rewinds{c, c.In(in.faults.Rewinds)}
	in.often(in.rewinds.perDay, func() {
		h := in.world.hosts[c.N(len(in.world.hosts))]
		switch lost := c.N(2) == 0; {
		case !h.Rewinds:
		case lost:
			h.Rewind(nil)
		default:
			h.Rewind(h.copied)
		}
	})
}

// copyDisk sometimes copies the disk of a host that has just written.
func (in *injector) copyDisk(h *Host) {
	if r := in.rewinds; h.Rewinds && r.perDay > 0 && r.chance.N(copyEvery) == 0 {
		h.copied = h.disk.Copy()
	}
}

// Rewind crashes the host and replaces the records of its disk by older ones, or by none if nil.
func (h *Host) Rewind(older Tables) {
	h.crash(h.world.faults.downtime())
	h.disk.Tables = older.Copy()
	h.world.stats.Rewound++
	h.world.observe(func(o Observer) {
		if r, ok := o.(Rewinder); ok {
			r.Rewound(h)
		}
	})
}
