package config

import (
	"ramp/agents/exit"
	"ramp/agents/resource"
)

// Forecast says how a site uses its forecast of running jobs.
type Forecast struct {
	Overbook bool `yaml:"sharpen,omitempty"`          // sell cores of jobs that are expected to end early
	Broken   int  `yaml:"broken_per_mille,omitempty"` // broken promises at which the site stops that
}

// cannotOverbook says why a driver cannot sell cores of running jobs; "" if it can.
func cannotOverbook(driver string) string {
	return map[string]string{
		"slurm":   "a reservation of Slurm over running jobs (IGNORE_JOBS) takes the first cores by number, also those of a job that runs on while others are free",
		"pbs":     "PBS confirms no reservation over the requested time of a running job",
		"local":   "it knows of no jobs but those in sold slots",
		"command": "its program does not identify jobs, so their waits cannot be learnt",
	}[driver]
}

func (f Forecast) check(driver string) error {
	why := cannotOverbook(driver)
	switch {
	case f.Overbook && why != "":
		return exit.Fail(exit.Usage, "leave it out: it sells by the requested times then; docs/FORECAST.md says more",
			"configuration: resource.forecast.sharpen: not with the driver %s: %s", driver, why)
	case f.Broken != 0 && !f.Overbook:
		return exit.Fail(exit.Usage, "", "configuration: resource.forecast.broken_per_mille: needs resource.forecast.sharpen: true")
	case f.Broken < 0 || f.Broken > resource.MaxBroken:
		return exit.Fail(exit.Usage, "", "configuration: resource.forecast.broken_per_mille %d: want 1..%d", f.Broken, resource.MaxBroken)
	}
	return nil
}
