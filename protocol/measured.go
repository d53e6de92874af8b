package protocol

import "fmt"

// Measured is the source of the usage of a slot in which its seller launched no
// program. The values are stored and sent.
type Measured string

// The sources of a usage. Empty stands for the programs that the seller launched, a
// model, or the record of a seller that does not name its source.
const (
	MeasuredAccounting Measured = "accounting" // the batch system's accounting of jobs in the slot
	MeasuredJobs       Measured = "jobs"       // the cores of the jobs that the batch system listed in the slot
	MeasuredSlot       Measured = "slot"       // unknown: every core counts throughout
)

// Validate reports an unknown source.
func (m Measured) Validate() error {
	switch m {
	case "", MeasuredAccounting, MeasuredJobs, MeasuredSlot:
		return nil
	}
	return fmt.Errorf("measured by %.32q: want %s, %s or %s", string(m), MeasuredAccounting, MeasuredJobs, MeasuredSlot)
}
