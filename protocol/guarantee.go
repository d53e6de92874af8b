package protocol

import (
	"math/big"
	"time"
)

// GuaranteeGrace is wall time for which a rate of use is no sign yet that a server
// broke its promise: programs begin with waiting for a disk.
const GuaranteeGrace = 10 * time.Second

// What a server guarantees. The words are stored.
const (
	GuaranteesShare = "share" // Smin: so much was there at all times
	GuaranteesRate  = "rate"  // rmin: a job that was always ready to run got so much
)

// Guarantee is what the server of a metered unit has promised, and what its record
// says of that (001). Of a rate it shows a broken promise only if the job was always
// ready to run, which the owner of the job knows. A share or rate of which the
// promise is missed costs nothing: Due says so already.
type Guarantee struct {
	Of       string `json:"of"`       // GuaranteesShare or GuaranteesRate
	Promised int64  `json:"promised"` // micro-cores
	Had      int64  `json:"had"`      // micro-cores, rounded down
	Kept     bool   `json:"kept"`
}

// Missed is by how many micro-cores a promise was missed; zero: it was kept.
func (g Guarantee) Missed() int64 {
	if g.Kept {
		return 0
	}
	return g.Promised - g.Had
}

// Guarantee is how a server kept its promise over a stretch, which must be valid; nil:
// it promised nothing, or nothing ran.
func (t Tariff) Guarantee(u Usage) *Guarantee {
	if u.Wall == 0 {
		return nil
	}
	g := Guarantee{Of: GuaranteesShare, Promised: t.Q.Lo, Had: u.Share}
	if t.Q.Top == 0 {
		g = Guarantee{Of: GuaranteesRate, Promised: t.P.Lo, Had: MaxRate}
		if rate := new(big.Int).Quo(bigProduct(int64(u.CPU), Core), big.NewInt(int64(u.Wall))); rate.IsInt64() {
			g.Had = min(rate.Int64(), MaxRate)
		}
	}
	if g.Promised == 0 {
		return nil
	}
	g.Kept = t.Kept(u, GuaranteeGrace)
	return &g
}
