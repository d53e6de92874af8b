package voids_test

import (
	"fmt"
	"strings"
	"testing"

	"ramp/bank/voids"
	"ramp/protocol"
)

func agent(name string) protocol.AgentID {
	return protocol.AgentID(name + "@" + strings.Repeat("a", protocol.FingerprintLen))
}

// Beyond MaxLapsed users the one whose contracts lapsed first joins all the others, also
// in what is stored.
func TestUsersWithLapsedContractsAreBounded(t *testing.T) {
	us, rows := voids.New(), map[string][]byte{}
	for i := range voids.MaxLapsed + 10 {
		for _, r := range us.Lapse(agent(fmt.Sprint("u", i)), int64(i+1)) {
			if rows[r.Key] = r.Value; r.Value == nil {
				delete(rows, r.Key)
			}
		}
	}
	if len(rows) != voids.MaxLapsed+1 {
		t.Errorf("%d rows, want %d", len(rows), voids.MaxLapsed+1)
	}
	again := voids.New()
	for key, value := range rows {
		if err := again.Load(key, value); err != nil {
			t.Error(err)
		}
	}
	for _, x := range []struct {
		user string
		want int64
	}{{"u0", 10}, {"u9", 10}, {"u10", 11}, {"nobody", 10}} {
		if got, stored := us.Until(agent(x.user)), again.Until(agent(x.user)); got != x.want || stored != x.want {
			t.Errorf("%s until %d, stored %d, want %d", x.user, got, stored, x.want)
		}
	}
}
