package command

import (
	"time"

	"ramp/protocol/message"
)

// StateOf is the state in an answer.
func StateOf(b []byte) (message.QueueChanged, error) {
	a, err := readAnswer(b)
	if err != nil {
		return message.QueueChanged{}, err
	}
	return a.state(time.Unix(0, 0))
}
