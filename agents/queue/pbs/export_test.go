package pbs

import (
	"time"

	"ramp/protocol/message"
)

// Reservations counts the reservations that are read.
func Reservations(b []byte) (int, error) {
	list, err := readReservations(b)
	return len(list), err
}

// Jobs is the state that jobs make.
func Jobs(b []byte) (message.QueueChanged, error) {
	q := message.QueueChanged{At: time.Unix(1600079400, 0)}
	list, err := readJobs(b)
	if err == nil {
		take(&q, list, nil)
	}
	return q, err
}

// ReadSite is the survey that nodes make.
var ReadSite = readSite
