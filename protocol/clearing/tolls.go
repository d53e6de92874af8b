package clearing

// moveTolls moves the tolls a few times towards a better bound on the gain. It returns
// the best bound and keeps its tolls.
func (p *packing) moveTolls(l level) int64 {
	tolls := p.tolls[l]
	for _, r := range p.rows {
		tolls[r] = min(tolls[r], mostWorth/max(p.cover.capacity[r], 1)) // the capacity may have grown since
	}
	bound := p.tolled(l)
	keep := make([]int64, len(p.rows))
	now := bound
	for range tollMoves {
		for i, r := range p.rows {
			if now == bound {
				keep[i] = tolls[r]
			}
		}
		if bound <= p.most || !p.stepTolls(tolls, now-p.most) {
			break
		}
		now = p.tolled(l)
		bound = min(bound, now)
	}
	if now != bound {
		for i, r := range p.rows {
			tolls[r] = keep[i]
		}
	}
	return bound
}

// stepTolls raises the tolls of overfull rows and lowers the others, and reports
// whether it moved any.
func (p *packing) stepTolls(tolls []int64, gap int64) bool {
	var norm int64
	for _, r := range p.rows {
		if miss := p.overfull(r); miss > 0 || tolls[r] > 0 {
			norm += miss * miss
		}
	}
	if norm == 0 {
		return false
	}
	step := min(gap/norm+1, mostTollStep)
	for _, r := range p.rows {
		tolls[r] = min(max(tolls[r]+step*p.overfull(r), 0), mostWorth/max(p.cover.capacity[r], 1))
	}
	return true
}

// overfull is by how many cores the picks of the last bound exceed row r.
func (p *packing) overfull(r int) int64 {
	return min(max(p.used[r]-p.cover.capacity[r], -mostOver), mostOver)
}

// tolled is the bound that the current tolls give; its picks fill used.
func (p *packing) tolled(l level) int64 {
	bound := p.worth(l)
	for _, r := range p.rows {
		p.used[r] = 0
	}
	for _, h := range p.heads {
		best, most := -1, int64(0)
		for _, b := range h.offers {
			p.purse.steps += 1 + len(p.cover.m.offers[b].uses)
			if v := p.valueOf(l, b); v > most {
				best, most = b, v
			}
		}
		if best >= 0 {
			bound += most
			for _, u := range p.cover.m.offers[best].uses {
				p.used[u.row] += u.cores
			}
		}
	}
	return bound
}

func (p *packing) valueOf(l level, b int) int64 {
	v := -p.rc[b]
	for _, u := range p.cover.m.offers[b].uses {
		v -= u.cores * p.tolls[l][u.row]
	}
	return v
}

// worth is the toll of all cores.
func (p *packing) worth(l level) int64 {
	var sum int64
	for _, r := range p.rows {
		sum += p.cover.capacity[r] * p.tolls[l][r]
	}
	return sum
}
