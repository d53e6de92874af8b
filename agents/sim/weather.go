package sim

import (
	"time"

	"ramp/protocol"
)

// weather is what was drawn of the faults for this run.
type weather struct {
	chance     Chance // of what befalls the world from time to time
	crashes    int    // per 100,000 outputs
	offClock   int    // percent of the hosts
	partitions int    // per day, and so on
	stalls     int
	outages    int
	takeOvers  int
	fullDisk   int
	rewinds    rewinds
}

// blow draws this run's weather and begins it.
func (w *World) blow() {
	f, c := w.cfg.Faults, NewChance(w.cfg.Seed, 1)
	w.net = network{
		chance: NewChance(w.cfg.Seed, 3), linkKey: NewChance(w.cfg.Seed, 4).r.Uint64(), stalled: map[stall]time.Duration{},
		loss: c.In(f.Loss), doubled: c.In(f.Doubled), told: c.In(f.Told), missed: c.In(f.Missed),
		tails: c.In(f.Tails), delays: f.Delay, tail: f.Tail,
	}
	w.weather = weather{
		chance: c, crashes: c.In(f.Crashes), offClock: c.In(f.OffClock), partitions: c.In(f.Partitions),
		stalls: c.In(f.Stalls), outages: c.In(f.Outages), fullDisk: c.In(f.FullDisk),
		takeOvers: c.In(f.TakeOvers),
	}
	w.often(w.weather.partitions, w.part)
	w.often(w.weather.stalls, w.stall)
	w.often(w.weather.outages, w.outage)
	w.often(w.weather.fullDisk, w.fill)
	w.often(w.weather.takeOvers, w.depose)
	w.blowRewinds()
}

// often lets something happen so many times a day, at random, until it is calm.
func (w *World) often(perDay int, f func()) {
	if perDay == 0 {
		return
	}
	w.After(w.weather.chance.Waiting(24*time.Hour/time.Duration(perDay)), func() {
		if w.calm {
			return
		}
		f()
		w.often(perDay, f)
	})
}

// Calm stops all faults: partitions heal, disks have room, hosts come up, clocks
// stay as they are.
func (w *World) Calm() {
	w.calm = true
	w.net.parted, w.net.stalled = nil, map[stall]time.Duration{}
	for _, h := range w.hosts {
		h.disk.full = false
		if !h.up {
			w.plan(time.Second, event{kind: starts, host: h})
		}
	}
}

// setClock decides how far a host's clock is off, and how fast it goes.
func (w *World) setClock(h *Host) {
	c := w.weather.chance
	off, offset, drift := c.N(100) < w.weather.offClock, c.For(w.cfg.Faults.Offset), c.In(w.cfg.Faults.Drift)
	if off && !h.Steady {
		h.offset, h.drift = offset, int64(drift)
	}
}

// victim is a host that faults may befall, nil if there is none.
func (w *World) victim() *Host {
	if len(w.hosts) == 0 {
		return nil
	}
	if h := w.hosts[w.weather.chance.N(len(w.hosts))]; !h.Steady {
		return h
	}
	return nil
}

// part cuts some hosts off from the others.
func (w *World) part() {
	c := w.weather.chance
	p := parting{until: w.now + c.Skewed(w.cfg.Faults.Parted), inside: map[int]bool{}}
	p.inTo, p.outTo = true, true
	switch c.N(3) {
	case 0:
		p.inTo = false
	case 1:
		p.outTo = false
	}
	for range 1 + c.N(max(1, len(w.hosts)/2)) {
		p.inside[c.N(len(w.hosts))] = true
	}
	standing := w.net.parted[:0]
	for _, old := range w.net.parted {
		if old.until > w.now {
			standing = append(standing, old)
		}
	}
	w.net.parted = append(standing, p)
}

// stall stops a link for a while.
func (w *World) stall() {
	c := w.weather.chance
	s := stall{c.N(len(w.hosts)), c.N(len(w.hosts))}
	for old, until := range w.net.stalled {
		if until <= w.now {
			delete(w.net.stalled, old)
		}
	}
	w.net.stalled[s] = w.now + c.Skewed(w.cfg.Faults.Stalled)
}

// outage takes a host away, whatever it does.
func (w *World) outage() {
	if h := w.victim(); h != nil {
		h.crash(w.downtime())
	}
}

// depose lets standbys take over, whether their leaders are well or not.
func (w *World) depose() {
	for _, h := range w.hosts {
		if h.other != nil && w.Leader(h.ID()) != h {
			h.takeOver()
		}
	}
}

// fill fills a host's disk for a while.
func (w *World) fill() {
	h := w.victim()
	if h == nil {
		return
	}
	h.disk.full = true
	w.After(w.weather.chance.Skewed(w.cfg.Faults.Full), func() { h.disk.full = false })
}

// downtime is how long a crashed host stays away.
func (w *World) downtime() time.Duration {
	if w.hooks.Crash != nil || w.quiet() { // a crash that was drawn before the faults stopped
		return time.Second
	}
	return w.crashes.Skewed(w.cfg.Faults.Down)
}

// writeTime is how long a write takes.
func (w *World) writeTime() time.Duration { return w.crashes.Skewed(w.cfg.Faults.Write) }

// kept is how much of a frame of n bytes a crash leaves: nothing, a part, or all.
func (w *World) kept(n int) int {
	switch w.crashes.N(3) {
	case 0:
		return 0
	case 1:
		return w.crashes.N(n)
	}
	return n
}

// crashPoint decides whether, and where, a host crashes at an Output.
func (w *World) crashPoint(h *Host, out protocol.Output) Point {
	switch {
	case w.hooks.Crash != nil:
		return w.hooks.Crash(Boundary{h, h.output, out})
	case h.Steady || w.quiet():
	case w.weather.crashes > 0 && w.crashes.N(100_000) < w.weather.crashes:
		return Point(1 + w.crashes.N(4))
	}
	return Survives
}
