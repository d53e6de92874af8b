package protocol

import (
	"math/big"
	"time"
)

// GuaranteeGrace is the wall time before a low rate of use counts as a broken
// promise: programs wait for a disk first.
const GuaranteeGrace = 10 * time.Second

// The guarantees of a server. The values are stored.
const (
	GuaranteesShare = "share" // Smin: this share was available at all times
	GuaranteesRate  = "rate"  // rmin: a job that was always ready to run got this rate
)

// Guarantee is the promise of a metered unit's server, and how its usage record compares (001). A
// low rate is a broken promise only if the job was always ready to run, which only its owner knows.
// Due charges nothing for a share or rate below the promise.
type Guarantee struct {
	Of       string `json:"of"`       // GuaranteesShare or GuaranteesRate
	Promised int64  `json:"promised"` // micro-cores
	Had      int64  `json:"had"`      // micro-cores, rounded down
	Kept     bool   `json:"kept"`
}

// Missed is by how many micro-cores a promise was missed; zero if it was kept.
func (g Guarantee) Missed() int64 {
	if g.Kept {
		return 0
	}
	return g.Promised - g.Had
}

// Guarantee compares a stretch, which must be valid, with the server's promise; nil if
// it promised nothing or nothing ran.
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
