package wan

// Stats count packets since the WAN began.
type Stats struct {
	Sent      uint64 // to a host of this WAN
	Delivered uint64
	Lost      uint64 // by the links' loss
	Cut       uint64
	Dropped   uint64 // at a full queue
	Refused   uint64 // by a NAT, on the way in
}

// Stats are the counts so far.
func (w *WAN) Stats() Stats {
	return Stats{
		Sent: w.sent.Load(), Delivered: w.delivered.Load(), Lost: w.lost.Load(), Cut: w.cut.Load(), Dropped: w.dropped.Load(), Refused: w.refused.Load(),
	}
}
