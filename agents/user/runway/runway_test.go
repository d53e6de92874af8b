package runway_test

import (
	"math"
	"testing"
	"time"

	"ramp/agents/user/runway"
	"ramp/protocol"
	"ramp/protocol/message"
)

const (
	cr    = protocol.Credit
	day   = 24 * time.Hour
	never = -1
)

// moved is an entry of so long ago.
func moved(ago time.Duration, what string, amount, held protocol.Credits) message.StatementLine {
	return message.StatementLine{Time: runwayNow.Add(-ago), What: what, Amount: amount, Held: held, Currency: "CPU"}
}

var runwayNow = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// spentBy is what entries have spent since an instant.
func spentBy(since time.Time, lines []message.StatementLine) runway.Spent {
	s := runway.Spent{First: runway.First(message.Statement{Lines: lines}, "CPU")}
	for _, l := range lines {
		if !l.Time.Before(since) {
			s.Amount += runway.Fell(l)
		}
	}
	return s
}

func TestHowLongTheMoneyLasts(t *testing.T) {
	plain := message.Balance{Currency: "CPU", Balance: 70 * cr, Available: 70 * cr}
	allowed := message.Balance{Currency: "CPU", Balance: 70 * cr, Available: 70 * cr, Income: 10 * cr, Decay: cr / 10}
	member := message.Balance{Currency: "CPU", Balance: 10 * cr, Available: 10 * cr, Group: "A", Spendable: 70 * cr, Pays: message.PaysUserThenGroup}
	byGroup, own := member, member
	byGroup.Pays, own.Pays = message.PaysGroup, message.PaysUser
	long := moved(30*day, "settle", -cr, 0)
	for _, c := range []struct {
		name       string
		b          message.Balance
		own, group []message.StatementLine
		spent      protocol.Credits
		over       time.Duration
		lasts      float64 // days
		low        bool
	}{
		{"nothing is spent", plain, nil, nil, 0, 7 * day, never, false},
		{"of an old account the whole time counts", plain, []message.StatementLine{long, moved(day, "settle", -7*cr, 0)}, nil, 7 * cr, 7 * day, 70, false},
		{"of a new one that since its first payment", plain, []message.StatementLine{moved(4*day, "credit", 90*cr, 0), moved(2*day, "settle", -20*cr, 0)}, nil, 20 * cr, 2 * day, 7, false},
		{"but a day at least", plain, []message.StatementLine{moved(time.Minute, "settle", -30*cr, 0)}, nil, 30 * cr, day, 7.0 / 3, true},
		{"what is held counts, and what came back", plain, []message.StatementLine{long, moved(day, "reserve", 0, 20*cr), moved(day, "complete", -7*cr, -20*cr)}, nil, 7 * cr, 7 * day, 70, false},
		{"the operator's transfers do not", plain, []message.StatementLine{long, moved(day, "settle", -7*cr, 0), moved(day, "transfer", -50*cr, 0)}, nil, 7 * cr, 7 * day, 70, false},
		{"an income that covers it", allowed, []message.StatementLine{long, moved(day, "settle", -70*cr, 0)}, nil, 70 * cr, 7 * day, never, false},
		{"an income that covers a part: 770·e^(−t/10) = 700", allowed, []message.StatementLine{moved(time.Hour, "settle", -80*cr, 0)}, nil, 80 * cr, day, 0.953101798043, true},
		{"a group's money, whoever spends it", member, []message.StatementLine{long, moved(day, "settle", -2*cr, 0)},
			[]message.StatementLine{moved(day, "settle", -10*cr, 0), moved(day, "complete", 5*cr, 0)}, 7 * cr, 7 * day, 70, false},
		{"the group's alone, where that pays", byGroup, []message.StatementLine{long, moved(day, "complete", 2*cr, 0)},
			[]message.StatementLine{long, moved(day, "settle", -7*cr, 0)}, 7 * cr, 7 * day, 70, false},
		{"one's own alone, where that pays", own, []message.StatementLine{long, moved(day, "settle", -7*cr, 0)},
			[]message.StatementLine{long, moved(day, "settle", -70*cr, 0)}, 7 * cr, 7 * day, 70, false},
	} {
		since := runwayNow.Add(-7 * day)
		l := runway.Of(runwayNow, 7*day, c.b, spentBy(since, c.own), spentBy(since, c.group))
		days := float64(never)
		if !math.IsInf(l.Lasts, 1) {
			days = l.Lasts / day.Seconds()
		}
		if d := days - c.lasts; l.Spent != c.spent || l.Over != c.over || d < -1e-6 || d > 1e-6 || l.Low != c.low {
			t.Errorf("%s: %s in %g days last %g days, low %t; want %s in %g, %g, %t", c.name,
				l.Spent, l.Over.Hours()/24, days, l.Low, c.spent, c.over.Hours()/24, c.lasts, c.low)
		}
	}
}
