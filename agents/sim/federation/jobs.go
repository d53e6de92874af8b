package federation

import (
	"fmt"
	"time"

	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Random is a federation of so many sites and jobs under faults: the jobs come over the
// time with faults, at all levels and of all sizes, and some never leave their home.
func Random(seed uint64, sites, jobs int, faults sim.Faults, hours int) Config {
	c := sim.NewChance(seed, 12)
	cfg := Config{Seed: seed, Users: 3, Rules: RulesOf, Faults: faults, Time: time.Duration(hours) * time.Hour, Calm: 5 * 24 * time.Hour}
	for range sites {
		cfg.Modules = append(cfg.Modules, 2+c.N(7))
	}
	cfg.Jobs = func(ids []protocol.AgentID) []Job {
		var list []Job
		for i := range jobs {
			least := 1 + c.N(2)
			j := Job{
				ID: fmt.Sprintf("job%d", i+1), At: c.For(sim.Span{Most: cfg.Time}), Home: c.N(sites), Local: c.N(4) == 0, Owner: c.N(cfg.Users),
				Work: c.Waiting(20*time.Minute) + time.Second,
			}
			j.Terms = message.JobTerms{Level: 1 + c.N(message.MaxLevels), Least: least, Most: least + c.N(4), Wall: 24 * time.Hour, Bytes: int64(c.N(1 << 30)), Where: ids[c.N(sites)]}
			if j.Local {
				j.Terms.Least, j.Terms.Most = 1, 2
			}
			list = append(list, j)
		}
		return list
	}
	return cfg
}
