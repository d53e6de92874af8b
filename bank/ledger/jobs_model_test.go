package ledger_test

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// jobsModel is what the sources say of jobs that are paid after the fact (000,
// 001), as one would write it down: who holds what of whom, and no tables. With
// groups it is bartering, without them everybody pays and earns alone.
type jobsModel struct {
	balance   map[protocol.AgentID]*big.Int
	limit     map[protocol.AgentID]protocol.Credits
	frozen    map[protocol.AgentID]bool
	groups    []ledger.Group // none: plain
	jobs      []*modelJob
	bundles   []*modelBundle
	graceEnds time.Time
}

// modelJob is one unit of a bundle that was decided for.
type modelJob struct {
	bundle *modelBundle
	unit   protocol.BundleUnit
	held   map[protocol.AgentID]protocol.Credits // by account
	state  string                                // open, filed, disputed; else how it ended
	due    protocol.Credits
	until  time.Time
	paid   protocol.Credits
}

func (j *modelJob) running() bool {
	return j.state == "open" || j.state == "filed" || j.state == "disputed"
}

func (m *jobsModel) groupOf(user protocol.AgentID) (ledger.Group, ledger.Member, bool) {
	for _, g := range m.groups {
		for _, u := range g.Members {
			if u.User == user {
				return g, u, true
			}
		}
	}
	return ledger.Group{}, ledger.Member{}, false
}

func (m *jobsModel) sellerGroup(seller protocol.AgentID) (ledger.Group, bool) {
	for _, g := range m.groups {
		if slices.Contains(g.Clusters, seller) {
			return g, true
		}
	}
	return ledger.Group{}, false
}

// running is B less everything that is held.
func (m *jobsModel) running(id protocol.AgentID) *big.Int {
	r := new(big.Int).Set(m.balance[id])
	for _, j := range m.jobs {
		if j.running() {
			r.Sub(r, bigOf(j.held[id]))
		}
	}
	return r
}

// spare is max(0, R − L).
func (m *jobsModel) spare(id protocol.AgentID) protocol.Credits {
	if m.frozen[id] {
		return 0
	}
	r := m.running(id)
	r.Add(r, bigOf(m.limit[id]))
	return protocol.Credits(max(0, r.Int64()))
}

// split is where a price is held: on the user, then on its group.
func (m *jobsModel) split(user protocol.AgentID, price protocol.Credits) (map[protocol.AgentID]protocol.Credits, protocol.Code) {
	own, shared, group := m.spare(user), protocol.Credits(0), protocol.AgentID("")
	if len(m.groups) > 0 {
		g, u, ok := m.groupOf(user)
		if !ok {
			return nil, protocol.CodeAccount
		}
		group = ledger.GroupID(g.Name)
		shared = m.spare(group)
		if u.Pays == ledger.PaysUser {
			shared = 0
		}
		if u.Pays == ledger.PaysGroup {
			own = 0
		}
	}
	if own+shared < price {
		return nil, protocol.CodeFunds
	}
	h := map[protocol.AgentID]protocol.Credits{user: min(price, own)}
	if rest := price - h[user]; rest > 0 {
		h[group] = rest
	}
	return h, ""
}

// decide is what the last copy of a bundle leads to.
func (m *jobsModel) decide(b *modelBundle) {
	b.outcome = protocol.OutcomeVoid
	if b.reason = m.hindrance(b); b.reason != "" {
		return
	}
	before := len(m.jobs)
	for _, u := range b.Units {
		h, code := m.split(b.User, u.Cost)
		if code != "" {
			m.jobs, b.reason = m.jobs[:before], code
			return
		}
		m.jobs = append(m.jobs, &modelJob{bundle: b, unit: u, held: h, state: "open", until: u.Slot.End.Add(24 * time.Hour)})
	}
	b.outcome = protocol.OutcomeSettled
}

func (m *jobsModel) hindrance(b *modelBundle) protocol.Code {
	if m.balance[b.User] == nil {
		return protocol.CodeAccount
	}
	if m.frozen[b.User] {
		return protocol.CodeFrozen
	}
	for _, u := range b.Units {
		_, known := m.sellerGroup(u.Seller)
		if len(m.groups) == 0 {
			known = m.balance[u.Seller] != nil
		}
		if !known {
			return protocol.CodeAccount
		}
	}
	return ""
}

// end pays out of what is held, the user's part first, and frees the rest.
func (m *jobsModel) end(j *modelJob, paid protocol.Credits, how string) {
	j.state, j.paid = how, paid
	own := min(paid, j.held[j.bundle.User])
	m.balance[j.bundle.User].Sub(m.balance[j.bundle.User], bigOf(own))
	for id := range j.held {
		if id != j.bundle.User {
			m.balance[id].Sub(m.balance[id], bigOf(paid-own))
		}
	}
	if paid > 0 {
		m.earn(j.unit.Seller, paid)
	}
}

// earn divides a price among those who earn it, with fractions written out.
func (m *jobsModel) earn(seller protocol.AgentID, price protocol.Credits) {
	g, ok := m.sellerGroup(seller)
	if !ok {
		m.balance[seller].Add(m.balance[seller], bigOf(price))
		return
	}
	exact := func(amount protocol.Credits, ppm int64) *big.Rat {
		return new(big.Rat).Mul(new(big.Rat).SetInt(bigOf(amount)), big.NewRat(ppm, 1_000_000))
	}
	half := exact(price, g.Shared)
	shared := floor(half.Add(half, big.NewRat(1, 2)))
	m.balance[ledger.GroupID(g.Name)].Add(m.balance[ledger.GroupID(g.Name)], shared)
	rest := price - protocol.Credits(shared.Int64())
	type claim struct {
		user protocol.AgentID
		lost *big.Rat
	}
	var claims []claim
	left := int64(rest)
	for _, u := range g.Members {
		part := exact(rest, u.Share)
		whole := floor(part)
		m.balance[u.User].Add(m.balance[u.User], whole)
		left -= whole.Int64()
		claims = append(claims, claim{u.User, part.Sub(part, new(big.Rat).SetInt(whole))})
	}
	slices.SortFunc(claims, func(x, y claim) int { return cmp.Or(y.lost.Cmp(x.lost), cmp.Compare(x.user, y.user)) })
	for _, c := range claims[:left] {
		m.balance[c.user].Add(m.balance[c.user], big.NewInt(1))
	}
}

func floor(r *big.Rat) *big.Int { return new(big.Int).Div(r.Num(), r.Denom()) }

// due is what 001 says of a metered stretch, at most what is held.
func due(u protocol.BundleUnit, x protocol.Usage) protocol.Credits {
	if x.Wall == 0 {
		return 0
	}
	price := func(r protocol.Ramp, at *big.Rat) *big.Rat {
		top := big.NewRat(int64(r.Top), 1)
		switch {
		case at.Cmp(big.NewRat(r.Lo, 1)) <= 0:
			return new(big.Rat)
		case r.Hi == r.Lo || at.Cmp(big.NewRat(r.Hi, 1)) >= 0:
			return top
		}
		slope := new(big.Rat).Quo(top, big.NewRat(r.Hi-r.Lo, 1))
		return slope.Mul(slope, at.Sub(at, big.NewRat(r.Lo, 1)))
	}
	cpu, wall := big.NewRat(int64(x.CPU), int64(time.Hour)), big.NewRat(int64(x.Wall), int64(time.Hour))
	rate := new(big.Rat).Quo(cpu, wall)
	rate.Mul(rate, big.NewRat(protocol.Core, 1))
	sum := cpu.Mul(cpu, price(u.Tariff.P, rate))
	sum.Add(sum, wall.Mul(wall, price(u.Tariff.Q, big.NewRat(x.Share, 1))))
	n := floor(sum.Add(sum, big.NewRat(1, 2)))
	if n.Cmp(bigOf(u.Cost)) > 0 {
		return u.Cost
	}
	return protocol.Credits(n.Int64())
}

func (m *jobsModel) over(now time.Time, j *modelJob) bool {
	return j.state != "disputed" && !now.Before(j.until) && !now.Before(m.graceEnds)
}

func (m *jobsModel) report(now time.Time, j *modelJob, r ledger.JobReport) protocol.Code {
	d := protocol.Credits(0)
	switch {
	case j.bundle.Mode == protocol.ModeMetered:
		d = due(j.unit, r.Usage)
	case r.Success || r.Delivered:
		d = j.unit.Cost
	}
	if j.bundle.Mode == protocol.ModeMetered && (r.Success || r.Delivered) {
		d = max(d, j.unit.Tariff.Least)
	}
	switch {
	case !j.running():
		return ""
	case j.state != "open" && d != j.due:
		return protocol.CodeMismatch
	case j.state == "open" && m.over(now, j):
		return protocol.CodeExpired
	case j.bundle.Mode == protocol.ModeOnCompletion && r.Success:
		m.end(j, d, "succeeded")
	case j.bundle.Mode == protocol.ModeOnCompletion:
		m.end(j, d, "failed")
	case r.Agreed || d == 0:
		m.end(j, d, "agreed")
	case j.state == "open":
		j.state, j.due, j.until = "filed", d, now.Add(time.Hour)
	}
	return ""
}

func (m *jobsModel) judge(now time.Time, j *modelJob, by protocol.AgentID, agree bool) protocol.Code {
	switch {
	case by != j.bundle.User:
		return protocol.CodeForbidden
	case !j.running():
		return ""
	case j.state == "open":
		return protocol.CodeMismatch
	case m.over(now, j):
		return protocol.CodeExpired
	case agree:
		m.end(j, j.due, "agreed")
	default:
		j.state = "disputed"
	}
	return ""
}

func (m *jobsModel) arbitrate(j *modelJob, paid protocol.Credits) protocol.Code {
	switch {
	case !j.running():
		return protocol.CodeUnknown
	case paid < 0 || paid > j.unit.Cost:
		return protocol.CodeFunds
	}
	m.end(j, paid, "arbitrated")
	return ""
}

func (m *jobsModel) cancel(j *modelJob, back protocol.Credits) protocol.Code {
	switch {
	case j.state == "cancelled":
		return ""
	case back < 0 || back > j.unit.Cost:
		return protocol.CodeMismatch
	case j.state != "open":
		return protocol.CodeMismatch
	}
	m.end(j, j.unit.Cost-back, "cancelled")
	return ""
}

func (m *jobsModel) transfer(from, to protocol.AgentID, amount protocol.Credits) protocol.Code {
	r := new(big.Int)
	if m.balance[from] != nil {
		r = m.running(from)
		r.Add(r, bigOf(m.limit[from]))
	}
	switch {
	case m.balance[from] == nil || m.balance[to] == nil:
		return protocol.CodeAccount
	case amount <= 0 || from == to:
		return protocol.CodeMalformed
	case r.Cmp(bigOf(amount)) < 0:
		return protocol.CodeFunds
	}
	m.balance[from].Sub(m.balance[from], bigOf(amount))
	m.balance[to].Add(m.balance[to], bigOf(amount))
	return ""
}

func (m *jobsModel) expire(now time.Time) {
	for _, j := range m.jobs {
		switch {
		case !j.running() || !m.over(now, j):
		case j.state == "filed":
			m.end(j, j.due, "silent")
		default:
			m.end(j, 0, "expired")
		}
	}
}
