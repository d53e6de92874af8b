package control

import (
	"cmp"
	"slices"
	"time"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// DryRunAnswer lists what an agent would offer for typical requests.
type DryRunAnswer struct {
	Price  protocol.Credits `json:"price_core_hour"` // the buyers' limit
	Hold   config.Held      `json:"hold"`
	Sales  message.Sales    `json:"sales"`
	Why    string           `json:"why,omitempty"` // if nothing is sold now
	Offers []TypicalAnswer  `json:"offers"`
}

// TypicalAnswer is the answer to one typical request.
type TypicalAnswer struct {
	Request string            `json:"request"`
	Cores   int               `json:"cores"`
	Wall    int               `json:"wall_minutes"`
	Within  int               `json:"within_minutes"` // from the earliest start to the latest end
	Line    message.QuoteLine `json:"answer"`
}

// Typicals are what buyers often ask of a machine: cores as a share of it, or of a node.
func Typicals(cores, node int) []TypicalAnswer {
	if node < 1 || node > cores {
		node = cores
	}
	const hour, day = 60, 24 * 60
	list := []TypicalAnswer{
		{Request: "one core", Cores: 1, Wall: hour, Within: 6 * hour},
		{Request: "one node", Cores: node, Wall: 4 * hour, Within: day},
		{Request: "a quarter of the machine", Cores: max(1, cores/4), Wall: hour, Within: day},
		{Request: "half of the machine", Cores: max(1, cores/2), Wall: 12 * hour, Within: 3 * day},
		{Request: "the whole machine", Cores: cores, Wall: hour, Within: 7 * day},
	}
	return slices.CompactFunc(list, func(a, b TypicalAnswer) bool {
		return a.Cores == b.Cores && a.Wall == b.Wall && a.Within == b.Within
	})
}

// Document is the request of a buyer who pays up to a price.
func (a TypicalAnswer) Document(now time.Time, price protocol.Credits) ([]byte, error) {
	from := now.Add(2 * time.Minute).Truncate(time.Second)
	d := rfql.Draft{Requests: []rfql.DraftRequest{{
		Price: price, TotalCores: a.Cores, NotBefore: from, End: from.Add(time.Duration(a.Within) * time.Minute), Wall: time.Duration(a.Wall) * time.Minute,
	}}}
	doc, err := rfql.Check(d, now)
	if err != nil {
		return nil, err
	}
	return doc.XML(), nil
}

// CheckCall asks what the agent would offer for a document.
type CheckCall struct {
	Document string `json:"document"`
	Rounds   int    `json:"rounds"`
}

// LastCall asks for the last lines of a list: at most Limit (zero: all), and only those
// before the line that Before names, if it names one.
type LastCall struct {
	Limit  int    `json:"limit"`
	Before string `json:"before,omitempty"` // an ID; of offers, their time
}

// Page returns the part of a list, oldest first, that a call asks for.
func Page[T any](list []T, q LastCall, id func(T) string) ([]T, error) {
	if q.Limit < 0 {
		return nil, exit.Fail(exit.Usage, "", "limit %d: want zero or more", q.Limit)
	}
	if q.Before != "" {
		i := slices.IndexFunc(list, func(t T) bool { return id(t) == q.Before })
		if i < 0 {
			return nil, exit.Fail(exit.Usage, "leave 'before' out for the last ones", "before %q: not in the list", q.Before)
		}
		list = list[:i]
	}
	if q.Limit > 0 && len(list) > q.Limit {
		list = list[len(list)-q.Limit:]
	}
	return list, nil
}

// DrainCall stops the sales.
type DrainCall struct {
	Why string `json:"why"`
}

// CalendarCall asks for the next hours.
type CalendarCall struct {
	Hours int `json:"hours"` // 1..336; 0: 24
	Bins  int `json:"bins"`  // 1..96; 0: 48
}

// Bounds of a calendar.
const (
	MaxCalendarHours, DefaultCalendarHours = 14 * 24, 24
	MaxCalendarBins, DefaultCalendarBins   = 96, 48
)

// Steps are how long a bin is, in whole minutes, and how many there are.
func (q CalendarCall) Steps() (step time.Duration, n int, err error) {
	hours, n := cmp.Or(q.Hours, DefaultCalendarHours), cmp.Or(q.Bins, DefaultCalendarBins)
	if hours < 1 || hours > MaxCalendarHours || n < 1 || n > MaxCalendarBins {
		return 0, 0, exit.Fail(exit.Usage, "", "%d hours in %d bins: want 1..%d hours in 1..%d bins", hours, n, MaxCalendarHours, MaxCalendarBins)
	}
	return max(time.Minute, (time.Duration(hours) * time.Hour / time.Duration(n)).Round(time.Minute)), n, nil
}
