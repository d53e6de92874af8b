package auction

// Len counts the remembered auctions.
func (s *Sellers) Len() int { return len(s.live) }
