package protocol

import "fmt"

// Measured says what the usage of a slot rests on in which no program was launched
// by its seller. The words are stored and sent.
type Measured string

// What a usage rests on. Empty: the programs that the seller launched, or a model;
// records of sellers that do not say are so, too.
const (
	MeasuredAccounting Measured = "accounting" // the batch system's accounting of the jobs in the slot
	MeasuredJobs       Measured = "jobs"       // the jobs that the batch system showed in it: the cores that they had
	MeasuredSlot       Measured = "slot"       // nothing is known of it: every core counts throughout
)

// Validate names what no record can say.
func (m Measured) Validate() error {
	switch m {
	case "", MeasuredAccounting, MeasuredJobs, MeasuredSlot:
		return nil
	}
	return fmt.Errorf("measured by %.32q: want %s, %s or %s", string(m), MeasuredAccounting, MeasuredJobs, MeasuredSlot)
}
