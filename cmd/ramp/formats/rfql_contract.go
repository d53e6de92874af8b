package formats

import (
	"fmt"

	"ramp/protocol"
	"ramp/rfql"
)

// shownContract is a contract in JSON: rates in cores, prices in credits.
type shownContract struct {
	Limit  float64          `json:"time_limit_minutes,omitempty"`
	P      protocol.Credits `json:"p_per_core_hour"`
	RMin   protocol.Credits `json:"rmin"` // millionths of a core, as credits have micro-credits
	RMax   protocol.Credits `json:"rmax"`
	Q      protocol.Credits `json:"q_per_hour"`
	SMin   protocol.Credits `json:"smin"`
	SMax   protocol.Credits `json:"smax"`
	Prepay bool             `json:"prepay"`
}

// showContract is nil for a request without a contract.
func showContract(c rfql.Contract) *shownContract {
	if c == (rfql.Contract{}) {
		return nil
	}
	return &shownContract{
		Limit: c.TimeLimit.Minutes(), P: c.P.Top, RMin: protocol.Credits(c.P.Lo), RMax: protocol.Credits(c.P.Hi),
		Q: c.Q.Top, SMin: protocol.Credits(c.Q.Lo), SMax: protocol.Credits(c.Q.Hi), Prepay: c.Prepay,
	}
}

func (s *shownContract) rows() [][]string {
	if s == nil {
		return nil
	}
	rows := [][]string{{"metered", fmt.Sprintf("P %s per core-hour used from %s to %s cores", s.P, s.RMin, s.RMax)}}
	if s.Q > 0 {
		rows = append(rows, []string{"", fmt.Sprintf("Q %s per hour from a least share of %s to %s cores", s.Q, s.SMin, s.SMax)})
	}
	if s.Limit > 0 {
		rows = append(rows, []string{"time limit", fmt.Sprintf("%g min", s.Limit)})
	}
	if s.Prepay {
		rows = append(rows, []string{"prepaid", "the ceiling; the job stops when it is used up"})
	}
	return rows
}
