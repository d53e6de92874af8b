package clearing

// moveTolls moves the tolls a few times towards a better bound on the gain, and
// returns the best bound; the tolls that gave it stay.
func (s *search) moveTolls(l level) int64 {
	p := &s.prices.pack
	tolls := p.tolls[l]
	for _, r := range p.rows {
		tolls[r] = min(tolls[r], mostWorth/max(s.room[r], 1)) // the room may have grown since
	}
	bound := s.tolled(l)
	keep := make([]int64, len(p.rows))
	now := bound
	for range tollMoves {
		for i, r := range p.rows {
			if now == bound {
				keep[i] = tolls[r]
			}
		}
		if bound <= p.most || !s.stepTolls(tolls, now-p.most) {
			break
		}
		now = s.tolled(l)
		bound = min(bound, now)
	}
	if now != bound {
		for i, r := range p.rows {
			tolls[r] = keep[i]
		}
	}
	return bound
}

// stepTolls raises the tolls of overfull rows and lowers the others'; it reports
// whether there was anything to move.
func (s *search) stepTolls(tolls []int64, gap int64) bool {
	p := &s.prices.pack
	var norm int64
	for _, r := range p.rows {
		if miss := s.overfull(r); miss > 0 || tolls[r] > 0 {
			norm += miss * miss
		}
	}
	if norm == 0 {
		return false
	}
	step := min(gap/norm+1, mostTollStep)
	for _, r := range p.rows {
		tolls[r] = min(max(tolls[r]+step*s.overfull(r), 0), mostWorth/max(s.room[r], 1))
	}
	return true
}

// overfull is by how many cores the picks of the last bound miss row r.
func (s *search) overfull(r int) int64 {
	return min(max(s.prices.pack.used[r]-s.room[r], -mostOver), mostOver)
}

// tolled is the bound that the present tolls give; used is what its picks use.
func (s *search) tolled(l level) int64 {
	p := &s.prices.pack
	bound := s.worth(l)
	for _, r := range p.rows {
		p.used[r] = 0
	}
	for _, h := range p.heads {
		best, most := -1, int64(0)
		for _, b := range h.offers {
			s.purse.steps += 1 + len(s.m.offers[b].uses)
			if v := s.valueOf(l, b); v > most {
				best, most = b, v
			}
		}
		if best >= 0 {
			bound += most
			for _, u := range s.m.offers[best].uses {
				p.used[u.row] += u.cores
			}
		}
	}
	return bound
}

func (s *search) valueOf(l level, b int) int64 {
	v := -s.prices.rc[b]
	for _, u := range s.m.offers[b].uses {
		v -= u.cores * s.prices.pack.tolls[l][u.row]
	}
	return v
}

// worth is the toll of all cores.
func (s *search) worth(l level) int64 {
	var sum int64
	for _, r := range s.prices.pack.rows {
		sum += s.room[r] * s.prices.pack.tolls[l][r]
	}
	return sum
}
