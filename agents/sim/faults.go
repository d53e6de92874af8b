package sim

import (
	"fmt"
	"strconv"
	"time"
)

// Range is a range of numbers, both ends included.
type Range struct {
	Least int `json:"least" yaml:"least"`
	Most  int `json:"most" yaml:"most"`
}

// Span is a range of durations, both ends included.
type Span struct {
	Least time.Duration `json:"least" yaml:"least"`
	Most  time.Duration `json:"most" yaml:"most"`
}

// Faults describes how hostile a world is. A run draws its own value from each Range and
// Span: per link, host or event as stated, otherwise once. Zero disables a fault.
type Faults struct {
	// Network. Loss and Doubled are per thousand messages and drawn once a run.
	Loss    Range `json:"loss_per_mille" yaml:"loss_per_mille"`
	Doubled Range `json:"doubled_per_mille" yaml:"doubled_per_mille"`
	Told    Range `json:"told_per_mille" yaml:"told_per_mille"` // lost messages that the sender learns about
	Missed  Range `json:"gossip_missed_per_mille" yaml:"gossip_missed_per_mille"`
	Delay   Span  `json:"delay" yaml:"delay"` // a link's mean; log-normal
	Tails   Range `json:"tails_per_mille" yaml:"tails_per_mille"`
	Tail    Span  `json:"tail" yaml:"tail"` // additional delay of those
	// Partitions and stalls: how often and how long.
	Partitions Range `json:"partitions_per_day" yaml:"partitions_per_day"`
	Parted     Span  `json:"parted" yaml:"parted"`
	Stalls     Range `json:"stalls_per_day" yaml:"stalls_per_day"`
	Stalled    Span  `json:"stalled" yaml:"stalled"`
	// Hosts. Crashes happen at Outputs.
	Crashes   Range `json:"crashes_per_100000_outputs" yaml:"crashes_per_100000_outputs"`
	Down      Span  `json:"down" yaml:"down"`
	Outages   Range `json:"outages_per_day" yaml:"outages_per_day"`       // of any host, at any time
	TakeOvers Range `json:"take_overs_per_day" yaml:"take_overs_per_day"` // by a bank's standby
	FullDisk  Range `json:"full_disks_per_day" yaml:"full_disks_per_day"`
	Full      Span  `json:"full" yaml:"full"`
	Write     Span  `json:"write" yaml:"write"`                               // the time of a durable write
	OffClock  Range `json:"wrong_clocks_percent" yaml:"wrong_clocks_percent"` // of the hosts
	Offset    Span  `json:"clock_offset" yaml:"clock_offset"`
	Drift     Range `json:"clock_drift_ppm" yaml:"clock_drift_ppm"`
	// Jumps set the clock of any host wrong by Jump, or a clock that jumped right again.
	Jumps Range `json:"clock_jumps_per_day" yaml:"clock_jumps_per_day"`
	Jump  Span  `json:"clock_jump" yaml:"clock_jump"`
	// Rewinds are lost disks and disks restored from a copy, on hosts that allow it.
	Rewinds Range `json:"rewinds_per_day" yaml:"rewinds_per_day"`
	// Batch systems.
	Slow       Span  `json:"queue_answer" yaml:"queue_answer"`
	QueueDown  Range `json:"queue_outages_per_day" yaml:"queue_outages_per_day"` // per batch system
	QueueAway  Span  `json:"queue_away" yaml:"queue_away"`
	Forgotten  Range `json:"queue_forgets_per_mille" yaml:"queue_forgets_per_mille"` // granted reservations, at an outage
	Recalled   Range `json:"queue_recalls_per_mille" yaml:"queue_recalls_per_mille"` // released reservations, at an outage, if they fit
	Short      Range `json:"queue_grants_short_per_mille" yaml:"queue_grants_short_per_mille"`
	LocalJobs  Range `json:"local_jobs_per_day" yaml:"local_jobs_per_day"`         // per batch system
	Overstated Range `json:"local_jobs_end_percent" yaml:"local_jobs_end_percent"` // of their wall time
}

// Levels are the named faults.
func Levels() map[string]Faults {
	calm := Faults{
		Delay: Span{time.Millisecond, 10 * time.Millisecond}, Write: Span{200 * time.Microsecond, 2 * time.Millisecond},
		Slow: Span{time.Millisecond, 50 * time.Millisecond}, LocalJobs: Range{0, 24}, Overstated: Range{20, 100},
	}
	light := calm
	light.Loss, light.Doubled, light.Told, light.Missed = Range{0, 10}, Range{0, 10}, Range{500, 1000}, Range{0, 10}
	light.Delay, light.Tails, light.Tail = Span{time.Millisecond, 50 * time.Millisecond}, Range{0, 2}, Span{time.Second, 3 * time.Second}
	light.Partitions, light.Parted = Range{0, 1}, Span{time.Second, 5 * time.Minute}
	light.Stalls, light.Stalled = Range{0, 4}, Span{0, 10 * time.Second}
	light.Crashes, light.Down, light.Outages = Range{0, 10}, Span{time.Second, 5 * time.Minute}, Range{0, 2}
	light.Slow, light.QueueDown, light.QueueAway = Span{time.Millisecond, 2 * time.Second}, Range{0, 1}, Span{time.Minute, 20 * time.Minute}
	forgetful := light
	forgetful.Rewinds = Range{24, 200}
	return map[string]Faults{"none": calm, "light": light, "forgetful": forgetful, "heavy": heavy()}
}

func heavy() Faults {
	return Faults{
		Loss: Range{0, 300}, Doubled: Range{0, 500}, Told: Range{0, 1000}, Missed: Range{0, 500},
		Delay: Span{time.Millisecond, 150 * time.Millisecond}, Tails: Range{0, 50}, Tail: Span{time.Second, 20 * time.Second},
		Partitions: Range{0, 24}, Parted: Span{time.Second, 2 * time.Hour},
		Stalls: Range{0, 200}, Stalled: Span{0, time.Minute},
		Crashes: Range{0, 500}, Down: Span{0, 2 * time.Hour}, Outages: Range{0, 24}, TakeOvers: Range{0, 48},
		FullDisk: Range{0, 6}, Full: Span{time.Second, time.Hour}, Write: Span{100 * time.Microsecond, 200 * time.Millisecond},
		OffClock: Range{0, 20}, Offset: Span{-10 * time.Minute, 10 * time.Minute}, Drift: Range{-500, 500},
		Slow: Span{time.Millisecond, 3 * time.Minute}, QueueDown: Range{0, 24}, QueueAway: Span{time.Minute, 2 * time.Hour},
		Forgotten: Range{0, 500}, Recalled: Range{0, 500}, Short: Range{0, 50}, LocalJobs: Range{0, 200}, Overstated: Range{5, 150},
	}
}

// field is one Range or Span with its limits.
type field struct {
	name        string
	least, most int64
	from, to    int64
	show        func(int64) string
}

func numbers(name string, r Range, from, to int) field {
	return field{name, int64(r.Least), int64(r.Most), int64(from), int64(to), func(n int64) string { return strconv.FormatInt(n, 10) }}
}

func spans(name string, s Span, from, to time.Duration) field {
	return field{name, int64(s.Least), int64(s.Most), int64(from), int64(to), func(n int64) string { return time.Duration(n).String() }}
}

// Validate names the field that is wrong and its limits.
func (f Faults) Validate() error {
	const day = 24 * time.Hour
	for _, c := range []field{
		numbers("loss_per_mille", f.Loss, 0, 1000), numbers("doubled_per_mille", f.Doubled, 0, 1000),
		numbers("told_per_mille", f.Told, 0, 1000), numbers("gossip_missed_per_mille", f.Missed, 0, 1000),
		spans("delay", f.Delay, 0, time.Minute), numbers("tails_per_mille", f.Tails, 0, 1000), spans("tail", f.Tail, 0, time.Hour),
		numbers("partitions_per_day", f.Partitions, 0, 1e6), spans("parted", f.Parted, 0, day),
		numbers("stalls_per_day", f.Stalls, 0, 1e6), spans("stalled", f.Stalled, 0, day),
		numbers("crashes_per_100000_outputs", f.Crashes, 0, 100_000), spans("down", f.Down, 0, day), numbers("outages_per_day", f.Outages, 0, 1e6),
		numbers("take_overs_per_day", f.TakeOvers, 0, 1e6), numbers("full_disks_per_day", f.FullDisk, 0, 1e6), spans("full", f.Full, 0, day), spans("write", f.Write, 0, time.Minute),
		numbers("wrong_clocks_percent", f.OffClock, 0, 100), spans("clock_offset", f.Offset, -day, day), numbers("clock_drift_ppm", f.Drift, -100_000, 100_000),
		numbers("clock_jumps_per_day", f.Jumps, 0, 1e4), spans("clock_jump", f.Jump, -7*day, 7*day),
		numbers("rewinds_per_day", f.Rewinds, 0, 1e6),
		spans("queue_answer", f.Slow, 0, time.Hour), numbers("queue_outages_per_day", f.QueueDown, 0, 1e4), spans("queue_away", f.QueueAway, 0, day),
		numbers("queue_forgets_per_mille", f.Forgotten, 0, 1000), numbers("queue_recalls_per_mille", f.Recalled, 0, 1000),
		numbers("queue_grants_short_per_mille", f.Short, 0, 1000),
		numbers("local_jobs_per_day", f.LocalJobs, 0, 1e5), numbers("local_jobs_end_percent", f.Overstated, 1, 1000),
	} {
		if c.name == "local_jobs_end_percent" && c.most == 0 {
			continue // no local jobs
		}
		if c.least < c.from || c.most > c.to || c.least > c.most {
			return fmt.Errorf("%s: least %s, most %s: want least <= most, both in %s..%s", c.name, c.show(c.least), c.show(c.most), c.show(c.from), c.show(c.to))
		}
	}
	return nil
}
