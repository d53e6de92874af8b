package sim

import "maps"

// Rewinder is an Observer that is also told when a host's disk was put back to what
// it was some time ago, or to nothing.
type Rewinder interface {
	Rewound(h *Host)
}

// streamRewinds is the chance of what befalls journals.
const streamRewinds = 5

// copyEvery is how many writes of a host pass between copies of its disk, on average:
// most are made while something is going on.
const copyEvery = 20

// rewinds is what befalls the disks of hosts that may be rewound.
type rewinds struct {
	chance Chance
	perDay int // disks lost, or put back to their last copies
}

func (w *World) blowRewinds() {
	c := NewChance(w.cfg.Seed, streamRewinds)
	w.weather.rewinds = rewinds{c, c.In(w.cfg.Faults.Rewinds)}
	w.often(w.weather.rewinds.perDay, func() {
		h := w.hosts[c.N(len(w.hosts))]
		switch lost := c.N(2) == 0; {
		case !h.Rewinds:
		case lost:
			h.rewind(NewDisk())
		default:
			h.rewind(h.copied)
		}
	})
}

// copyDisk now and then copies the disk of a host that has just written.
func (w *World) copyDisk(h *Host) {
	if r := w.weather.rewinds; h.Rewinds && r.perDay > 0 && r.chance.N(copyEvery) == 0 {
		h.copied = h.disk.copy()
	}
}

// rewind takes the host away, and puts an older disk into it; nil: it has none.
func (h *Host) rewind(older *Disk) {
	if older == nil {
		older = NewDisk()
	}
	h.crash(h.world.downtime())
	h.disk.tables = older.copy().tables
	h.world.stats.Rewound++
	h.world.observe(func(o Observer) {
		if r, ok := o.(Rewinder); ok {
			r.Rewound(h)
		}
	})
}

// copy is what is durable now.
func (d *Disk) copy() *Disk {
	c := NewDisk()
	for name, t := range d.tables {
		c.tables[name] = maps.Clone(t)
	}
	return c
}
