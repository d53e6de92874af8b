package command

import (
	"fmt"

	"ramp/agents/resource"
	"ramp/protocol/message"
)

// forecastConfig is what a site does with what it learns of its jobs.
type forecastConfig struct {
	Sharpen bool `yaml:"sharpen,omitempty"`          // sell over jobs that are expected to end early
	Broken  int  `yaml:"broken_per_mille,omitempty"` // promises; beyond it that stops
}

// cannotSharpen says why a driver cannot sell over running jobs; "" if it can.
func cannotSharpen(driver string) string {
	switch driver {
	case "slurm":
		return "a reservation of Slurm over running jobs (IGNORE_JOBS) takes the first cores by number, also those of a job that runs on while others are free"
	case "pbs":
		return "PBS confirms no reservation over the requested time of a running job"
	case "local":
		return "it knows of no jobs but those in sold slots"
	case "command":
		return "its program does not tell which job is which, so that nothing can be learnt"
	}
	return ""
}

// check says what is wrong with it for a driver.
func (f forecastConfig) check(driver string) error {
	why := cannotSharpen(driver)
	switch {
	case f.Sharpen && why != "":
		return fail(exitUsage, "leave it out: it sells by the requested times then; docs/FORECAST.md says more",
			"configuration: resource.forecast.sharpen: not with the driver %s: %s", driver, why)
	case f.Broken != 0 && !f.Sharpen:
		return fail(exitUsage, "", "configuration: resource.forecast.broken_per_mille: want resource.forecast.sharpen: true beside it")
	case f.Broken < 0 || f.Broken > resource.MaxBroken:
		return fail(exitUsage, "", "configuration: resource.forecast.broken_per_mille %d: want 1..%d", f.Broken, resource.MaxBroken)
	}
	return nil
}

// sharpenRows are how a site keeps what it promises.
func sharpenRows(f *message.ForecastStatus) [][]string {
	if f == nil || f.Sharpen == nil {
		return nil
	}
	s := f.Sharpen
	words := "slots are sold over jobs that are expected to end early"
	if !s.Selling {
		words = fmt.Sprintf("stopped: more than %d of 1,000 promises were broken; it goes on by itself as others are kept", s.BoundPerMille)
	}
	return [][]string{
		{"sharpened", words},
		{"promises", fmt.Sprintf("%d broken of the last %d, %s; %d sold over jobs, %d of these broken",
			s.Broken, s.Ended, rateWords(s.Rate), s.Sharpened, s.SharpenedBroken)},
	}
}

func rateWords(r *float64) string {
	if r == nil {
		return "none has begun yet"
	}
	return fmt.Sprintf("%.1f %%", 100**r)
}
