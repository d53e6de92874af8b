package bench_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// catsGen writes instances in the manner of the suite's distributions. They resemble those
// of the suite in structure, not in every parameter.
type catsGen struct {
	r     *rand.Rand
	goods int
	most  int // bids
	bids  []string
	dummy int
}

// catsKinds are the distributions.
func catsKinds() []string {
	return []string{"arbitrary", "regions", "paths", "matching", "scheduling", "l7"}
}

// generateCATS makes an instance of a kind with about so many bids.
func generateCATS(kind string, seed uint64, goods, bids int) string {
	g := &catsGen{r: rand.New(rand.NewPCG(seed, uint64(goods))), goods: goods, most: bids}
	f := map[string]func(){
		"arbitrary": func() { g.regions(false) }, "regions": func() { g.regions(true) },
		"paths": g.paths, "matching": g.matching, "scheduling": g.scheduling, "l7": g.binomial,
	}[kind]
	f()
	return fmt.Sprintf("%%%% %s, seed %d\n\ngoods %d\nbids %d\ndummy %d\n\n%s", kind, seed, goods, len(g.bids), g.dummy, strings.Join(g.bids, ""))
}

type catsBundle struct {
	price float64
	goods []int
}

// add writes the bids of one bidder, who wants one of them.
func (g *catsGen) add(list ...catsBundle) {
	list = list[:min(len(list), g.most-len(g.bids))]
	for _, b := range list {
		s := fmt.Sprintf("%d\t%.6g", len(g.bids), b.price)
		for _, x := range b.goods {
			s += fmt.Sprintf("\t%d", x)
		}
		if len(list) > 1 {
			s += fmt.Sprintf("\t%d", g.goods+g.dummy)
		}
		g.bids = append(g.bids, s+"\t#\n")
	}
	if len(list) > 1 {
		g.dummy++
	}
}

// neighbours are the weights between goods: of a grid, or between all of them.
func (g *catsGen) neighbours(grid bool) [][]float64 {
	w := make([][]float64, g.goods)
	side := int(math.Ceil(math.Sqrt(float64(g.goods))))
	for i := range w {
		w[i] = make([]float64, g.goods)
		for j := range i {
			dx, dy := i%side-j%side, i/side-j/side
			if !grid || dx*dx+dy*dy == 1 || dx*dx+dy*dy == 2 && g.r.IntN(5) == 0 {
				w[i][j] = g.r.Float64()
				w[j][i] = w[i][j]
			}
		}
	}
	return w
}

// regions has bidders of goods that complement each other.
func (g *catsGen) regions(grid bool) {
	w := g.neighbours(grid)
	common, private := make([]float64, g.goods), make([]float64, g.goods)
	for i := range common {
		common[i] = 1 + 99*g.r.Float64()
	}
	for len(g.bids) < g.most {
		for i := range private {
			private[i] = g.r.Float64()
		}
		value := func(b []int) float64 {
			v := math.Pow(float64(len(b)), 1.2)
			for _, x := range b {
				v += common[x] + 100*(private[x]-0.5)
			}
			return v
		}
		first := g.grow(w, private, []int{g.pick(private)}, 0)
		list := []catsBundle{{value(first), first}}
		if list[0].price <= 0 {
			continue
		}
		for _, x := range first {
			b := g.grow(w, private, []int{x}, len(first))
			v := value(b)
			again := slices.ContainsFunc(list, func(o catsBundle) bool { return slices.Equal(o.goods, b) })
			if !again && v > 0 && v <= 1.5*list[0].price && v >= 0.5*list[0].price {
				list = append(list, catsBundle{v, b})
			}
		}
		slices.SortFunc(list[1:], func(x, y catsBundle) int { return cmp.Compare(y.price, x.price) })
		g.add(list[:min(len(list), 6)]...)
	}
}

func (g *catsGen) pick(weights []float64) int {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	x := g.r.Float64() * sum
	for i, w := range weights {
		if x -= w; x < 0 {
			return i
		}
	}
	return len(weights) - 1
}

// grow adds neighbours up to a size; without one, another with a probability of nine tenths.
func (g *catsGen) grow(w [][]float64, private []float64, b []int, size int) []int {
	for size == 0 && g.r.Float64() < 0.9 || len(b) < size {
		next, any := make([]float64, g.goods), false
		for _, x := range b {
			for y, v := range w[x] {
				if !slices.Contains(b, y) {
					next[y] += v * private[y]
					any = any || next[y] > 0
				}
			}
		}
		if !any {
			break
		}
		b = append(b, g.pick(next))
	}
	slices.Sort(b)
	return b
}

// paths has bidders of one of several ways between two cities; the goods are roads.
func (g *catsGen) paths() {
	cities := max(6, g.goods*2/5)
	x, y := make([]float64, cities), make([]float64, cities)
	for i := range x {
		x[i], y[i] = g.r.Float64(), g.r.Float64()
	}
	dist := func(a, b int) float64 { return math.Hypot(x[a]-x[b], y[a]-y[b]) }
	roads, out := [][2]int{}, make([][]int, cities)
	for rank := 1; len(roads) < g.goods; rank++ { // each city's nearest, then its second, and so on
		for a := range cities {
			near := make([]int, cities)
			for i := range near {
				near[i] = i
			}
			slices.SortFunc(near, func(p, q int) int { return cmp.Compare(dist(a, p), dist(a, q)) })
			b := near[rank]
			if len(roads) < g.goods && !slices.Contains(roads, [2]int{b, a}) {
				out[a], out[b] = append(out[a], len(roads)), append(out[b], len(roads))
				roads = append(roads, [2]int{a, b})
			}
		}
	}
	for len(g.bids) < g.most {
		from, to := g.r.IntN(cities), g.r.IntN(cities)
		if from == to {
			continue
		}
		worth := dist(from, to) * (1 + g.r.Float64()/2)
		steps := 0
		var list []catsBundle
		var walk func(at int, length float64, way, seen []int)
		walk = func(at int, length float64, way, seen []int) {
			if steps++; length+dist(at, to) > worth || steps > 2000 {
				return
			}
			if at == to {
				b := slices.Sorted(slices.Values(way))
				list = append(list, catsBundle{100 * (worth - length), b})
				return
			}
			for _, i := range out[at] {
				next := roads[i][0] + roads[i][1] - at
				if !slices.Contains(seen, next) {
					walk(next, length+dist(at, next), append(slices.Clone(way), i), append(slices.Clone(seen), next))
				}
			}
		}
		walk(from, 0, nil, []int{from})
		slices.SortStableFunc(list, func(p, q catsBundle) int { return cmp.Compare(q.price, p.price) })
		list = slices.DeleteFunc(list, func(b catsBundle) bool { return b.price < 0.01 })
		g.add(list[:min(len(list), 5)]...)
	}
}

// matching has airlines that need a slot to start and one to land at another of four
// airports, with little difference between the hours.
func (g *catsGen) matching() {
	slots := g.goods / 4
	for len(g.bids) < g.most {
		a, b := g.r.IntN(4), g.r.IntN(3)
		if b >= a {
			b++
		}
		length, start := 1+g.r.IntN(max(1, slots/4)), g.r.IntN(slots)
		worth := 50 + 50*g.r.Float64()
		var list []catsBundle
		for late := -1; late <= 2; late++ {
			for longer := range 2 {
				s := start + late
				e := s + length + longer
				if s >= 0 && e < slots {
					v := worth * (1 - 0.1*math.Abs(float64(late)) - 0.07*float64(longer))
					list = append(list, catsBundle{v, []int{a*slots + s, b*slots + e}})
				}
			}
		}
		g.add(list...)
	}
}

// scheduling has jobs that need some hours in a row, before one of several deadlines.
func (g *catsGen) scheduling() {
	for len(g.bids) < g.most {
		length := 1 + g.r.IntN(max(2, g.goods/8))
		deadline := length + g.r.IntN(g.goods-length+1)
		worth := float64(length) * (1 + g.r.Float64()*0.3)
		var list []catsBundle
		for start := max(0, deadline-length-g.r.IntN(8)); start+length <= g.goods && start < deadline+4; start++ {
			b := make([]int, length)
			for i := range b {
				b[i] = start + i
			}
			late := max(0, start+length-deadline)
			list = append(list, catsBundle{worth * math.Pow(0.8, float64(late)), b})
		}
		g.add(list...)
	}
}

// binomial is L7: each good with one probability, at a price for each good.
func (g *catsGen) binomial() {
	for len(g.bids) < g.most {
		var b []int
		for x := range g.goods {
			if g.r.Float64() < 0.2 {
				b = append(b, x)
			}
		}
		if len(b) > 0 {
			g.add(catsBundle{float64(len(b)) * (0.5 + g.r.Float64()), b})
		}
	}
}
