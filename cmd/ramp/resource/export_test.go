package resource

import (
	"time"

	"ramp/protocol/message"
)

// ReservationRows is what a site is shown of its reservations.
func ReservationRows(l ...message.ReservationLine) [][]string { return reservationRows(l, time.Now()) }

var SalesWords = salesWords
