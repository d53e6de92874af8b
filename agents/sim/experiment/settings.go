package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Settings are the values that --set changes.
type Settings struct {
	DelayMin, DelayMax time.Duration // mean of a link, one way
	Processing         time.Duration // of a message, by its receiver
	UnitTime           time.Duration // of a unit in a call, by the seller
	RoundLimit         time.Duration
	Gap                time.Duration // between market starts
	Starts             int
	Rounds             int // most, of table 4
	Units              int // most, of figure 11b
	Users              int // most, of figure 12
	Hours              int // of figure 8b
	Jobs               int // of english's global stream
	Resources          int // most, of scale
	Spread             int // of the prices of scale's sellers, per mille
}

// Default are the settings of the published figures.
func Default() Settings {
	return Settings{
		DelayMin: 100 * time.Microsecond, DelayMax: 500 * time.Microsecond,
		Processing: 500 * time.Microsecond, UnitTime: 200 * time.Microsecond,
		RoundLimit: 15 * time.Second, Gap: time.Hour,
		Starts: 20, Rounds: 10, Units: 25, Users: 30, Hours: 24, Jobs: 400, Resources: 10_000, Spread: 100,
	}
}

// setting is one key of --set.
type setting struct {
	key, about  string
	number      *int
	span        *time.Duration
	least, most int64 // of spans in nanoseconds
}

func (s *Settings) keys() []setting {
	const ms, sec = int64(time.Millisecond), int64(time.Second)
	return []setting{
		{"delay_max", "longest mean delay of a link, one way", nil, &s.DelayMax, 0, 10 * sec},
		{"delay_min", "shortest mean delay of a link, one way", nil, &s.DelayMin, 0, 10 * sec},
		{"gap", "between market starts", nil, &s.Gap, sec, 240 * 3600 * sec},
		{"hours", "simulated hours of attractiveness", &s.Hours, nil, 1, 240},
		{"jobs", "jobs of english's global stream", &s.Jobs, nil, 1, 10_000},
		{"processing", "time that an agent needs for a message", nil, &s.Processing, 0, sec},
		{"resources", "most resources of scale", &s.Resources, nil, 20, 10_000},
		{"round_limit", "length of a fixed round", nil, &s.RoundLimit, 100 * ms, 25 * sec},
		{"rounds", "most rounds of an auction", &s.Rounds, nil, 2, 10},
		{"spread", "how far the prices of scale --resources are from those of table 2, at most, per mille", &s.Spread, nil, 0, 500},
		{"starts", "market starts of workloads, pricing and honesty", &s.Starts, nil, 1, 1000},
		{"unit_time", "time that a seller needs for a unit", nil, &s.UnitTime, 0, sec},
		{"units", "most units of an auction", &s.Units, nil, 2, 64},
		{"users", "most users at once", &s.Users, nil, 2, 100},
	}
}

// Set changes a setting, written key=value. Errors list the known keys, or the limits of the value.
func (s *Settings) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("%q: want key=value", text)
	}
	all := s.keys()
	if i := slices.IndexFunc(all, func(k setting) bool { return k.key == key }); i >= 0 {
		return all[i].set(value)
	}
	known := each(all, func(k setting) string { return k.key })
	return fmt.Errorf("unknown key %q: want one of %s", key, strings.Join(known, ", "))
}

func (k setting) set(value string) error {
	if k.number != nil {
		n, err := strconv.Atoi(value)
		if err != nil || int64(n) < k.least || int64(n) > k.most {
			return fmt.Errorf("%s %q: want a number in %d..%d", k.key, value, k.least, k.most)
		}
		*k.number = n
		return nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || int64(d) < k.least || int64(d) > k.most {
		return fmt.Errorf("%s %q: want a duration in %s..%s", k.key, value, time.Duration(k.least), time.Duration(k.most))
	}
	*k.span = d
	return nil
}

// Validate reports contradictory settings.
func (s Settings) Validate() error {
	if s.DelayMin > s.DelayMax {
		return fmt.Errorf("delay_min %s: want at most delay_max, %s", s.DelayMin, s.DelayMax)
	}
	return nil
}

// Lines lists all settings for reports: key, value and meaning.
func (s Settings) Lines() [][]string {
	return each(s.keys(), func(k setting) []string {
		if k.number != nil {
			return []string{k.key, strconv.Itoa(*k.number), k.about}
		}
		return []string{k.key, k.span.String(), k.about}
	})
}
