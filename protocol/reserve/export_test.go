package reserve

import "fmt"

// Alarms fails if a deal's next instant, as it is kept between turns, is another
// than the deal itself tells.
func (p *Participant) Alarms() error {
	for _, d := range p.order {
		if due := d.due(); !due.Equal(d.dueAt) {
			return fmt.Errorf("deal %s of %s: kept %s, due %s", d.conversation, d.user, d.dueAt, due)
		}
	}
	return nil
}

// NextLook is when a seller looks after a unit of which so much was used by now.
var NextLook = nextLook
