package resource

import (
	"fmt"

	"ramp/protocol/message"
)

// overbookRows show how a site that sells over running jobs keeps its promises.
func overbookRows(f *message.ForecastStatus) [][]string {
	if f == nil || f.Overbook == nil {
		return nil
	}
	s := f.Overbook
	words := "slots are sold over jobs that are expected to end early"
	if !s.Selling {
		words = fmt.Sprintf("stopped: more than %d of 1,000 promises were broken; it resumes by itself as others are kept", s.BoundPerMille)
	}
	return [][]string{
		{"overbooked", words},
		{"promises", fmt.Sprintf("%d broken of the last %d, %s; %d sold over jobs, %d of these broken",
			s.Broken, s.Ended, rateWords(s.Rate), s.Overbooked, s.OverbookedBroken)},
	}
}

func rateWords(r *float64) string {
	if r == nil {
		return "none has begun yet"
	}
	return fmt.Sprintf("%.1f %%", 100**r)
}
