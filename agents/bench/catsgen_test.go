package bench_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// catsGen writes instances of the suite's distributions with the parameters that it has when
// none are given. The random numbers are other ones. In paths and matching the prices are those
// of the paper (Leyton-Brown, Pearson and Shoham, 2000).
type catsGen struct {
	r       *rand.Rand
	goods   int
	most    int // bids
	bids    []catsBundle
	tries   int
	bidders int
}

type catsBundle struct {
	price float64
	goods []int // in order
	has   [4]uint64
	dummy int // the bidder, of several bids; 0: a bid of its own
}

// catsKinds are the distributions.
func catsKinds() []string {
	return []string{"arbitrary", "regions", "paths", "matching", "scheduling", "l2", "l3", "l4", "l5", "l6", "l7"}
}

// generateCATS makes an instance of a kind with about so many bids, none of which is
// dominated: another asks for no other goods and pays as much.
func generateCATS(kind string, seed uint64, goods, bids int) string {
	g := &catsGen{r: rand.New(rand.NewPCG(seed, uint64(goods))), goods: goods, most: bids}
	linear := func(low, high float64) func(int) float64 {
		return func(n int) float64 { return float64(n) * (low + (high-low)*g.r.Float64()) }
	}
	fixed := func(int) float64 { return 1000 * g.r.Float64() }
	map[string]func(){
		"arbitrary": func() { g.regions(false) }, "regions": func() { g.regions(true) },
		"paths": g.paths, "matching": g.matching, "scheduling": g.scheduling,
		"l2": func() { g.legacy(func() int { return 1 + g.r.IntN(goods) }, linear(0, 1000)) },
		"l3": func() { g.legacy(func() int { return 3 }, fixed) },
		"l4": func() { g.legacy(func() int { return 1 + g.times(0.55) }, linear(0, 1000)) },
		"l5": func() {
			g.legacy(func() int { return int(math.Round(4 + g.r.NormFloat64())) }, func(int) float64 { return 16 + 3*g.r.NormFloat64() })
		},
		"l6": func() { g.legacy(func() int { return 1 + int(5*g.r.ExpFloat64()) }, linear(0.5, 1.5)) },
		"l7": func() { g.legacy(g.binomial, linear(0.5, 1.5)) },
	}[kind]()
	return g.text(kind, seed)
}

func (g *catsGen) text(kind string, seed uint64) string {
	bids := &strings.Builder{}
	dummies := map[int]int{}
	alone := map[int]int{}
	for _, b := range g.bids {
		alone[b.dummy]++
	}
	for i, b := range g.bids {
		fmt.Fprintf(bids, "%d\t%.6g", i, b.price)
		for _, x := range b.goods {
			fmt.Fprintf(bids, "\t%d", x)
		}
		if b.dummy > 0 && alone[b.dummy] > 1 {
			if _, ok := dummies[b.dummy]; !ok {
				dummies[b.dummy] = g.goods + len(dummies)
			}
			fmt.Fprintf(bids, "\t%d", dummies[b.dummy])
		}
		fmt.Fprint(bids, "\t#\n")
	}
	return fmt.Sprintf("%%%% %s, seed %d\n\ngoods %d\nbids %d\ndummy %d\n\n%s", kind, seed, g.goods, len(g.bids), len(dummies), bids)
}

// wanting reports whether more bids are wanted. It gives up when most new ones are dominated.
func (g *catsGen) wanting() bool {
	g.tries++
	return len(g.bids) < g.most && g.tries < 200*g.most
}

// add adds the bids of one bidder, who wants one of them, and drops those that are dominated.
func (g *catsGen) add(list ...catsBundle) {
	g.bidders++
	for _, b := range list {
		if b.price <= 0 || len(b.goods) == 0 {
			continue
		}
		b.goods = slices.Sorted(slices.Values(b.goods))
		for _, x := range b.goods {
			b.has[x/64] |= 1 << (x % 64)
		}
		if len(list) > 1 {
			b.dummy = g.bidders
		}
		if slices.ContainsFunc(g.bids, func(o catsBundle) bool { return o.dominates(b) }) {
			continue
		}
		g.bids = append(slices.DeleteFunc(g.bids, b.dominates), b)
	}
	g.bids = g.bids[:min(len(g.bids), g.most)]
}

func (b catsBundle) dominates(o catsBundle) bool {
	for i := range b.has {
		if b.has[i]&^o.has[i] != 0 {
			return false
		}
	}
	return b.price >= o.price && (b.dummy == 0 || b.dummy == o.dummy)
}

// legacy has bidders of random goods.
func (g *catsGen) legacy(size func() int, price func(n int) float64) {
	for g.wanting() {
		if n := size(); n > 0 && n <= g.goods {
			g.add(catsBundle{price: price(n), goods: g.r.Perm(g.goods)[:n]})
		}
	}
}

// times is how often in a row something of probability p happens.
func (g *catsGen) times(p float64) (n int) {
	for g.r.Float64() < p {
		n++
	}
	return n
}

func (g *catsGen) binomial() (n int) {
	for range g.goods {
		if g.r.Float64() < 0.2 {
			n++
		}
	}
	return n
}

// neighbours are the weights between goods: of a grid, or between all of them.
func (g *catsGen) neighbours(grid bool) [][]float64 {
	w := make([][]float64, g.goods)
	for i := range w {
		w[i] = make([]float64, g.goods)
		for j := range i {
			if !grid {
				w[i][j] = g.r.Float64()
				w[j][i] = w[i][j]
			}
		}
	}
	if !grid {
		return w
	}
	side := int(math.Sqrt(float64(g.goods)))
	g.goods = side * side
	join := func(x, y, v, w2 int) {
		if x < side && y < side && v < side && w2 < side {
			w[y*side+x][w2*side+v], w[w2*side+v][y*side+x] = 1, 1
		}
	}
	for y := range side {
		for x := range side {
			if g.r.Float64() > 0.1 {
				join(x, y, x+1, y)
			}
			if g.r.Float64() > 0.1 {
				join(x, y, x, y+1)
			}
			if g.r.Float64() < 0.2 {
				if a := g.r.IntN(2); a == 0 {
					join(x, y, x+1, y+1)
				} else {
					join(x+1, y, x, y+1)
				}
			}
		}
	}
	return w
}

// regions has bidders of goods that complement each other.
func (g *catsGen) regions(grid bool) {
	w := g.neighbours(grid)
	jump := map[bool]float64{true: 0.05}[grid]
	common, private := make([]float64, g.goods), make([]float64, g.goods)
	for i := range common {
		common[i] = 1 + 99*g.r.Float64()
	}
	worth := func(b []int) (value, resale float64) {
		value = math.Pow(float64(len(b)), 1.2)
		for _, x := range b {
			resale += common[x]
			value += common[x] + 100*(private[x]-0.5)
		}
		return value, resale
	}
	for g.wanting() {
		for i := range private {
			private[i] = g.r.Float64()
		}
		first := g.grow(w, private, jump, []int{g.pick(private)}, 1+g.times(0.9))
		value, resale := worth(first)
		if value <= 0 {
			continue
		}
		var list []catsBundle
		for _, x := range first {
			b := g.grow(w, private, jump, []int{x}, len(first))
			again := slices.ContainsFunc(append(list, catsBundle{goods: first}), func(o catsBundle) bool { return slices.Equal(o.goods, b) })
			if v, r := worth(b); !again && v >= 0 && v <= 1.5*value && r >= 0.5*resale {
				list = append(list, catsBundle{price: v, goods: b})
			}
		}
		slices.SortStableFunc(list, func(x, y catsBundle) int { return cmp.Compare(y.price, x.price) })
		g.add(append([]catsBundle{{price: value, goods: first}}, list[:min(len(list), 5)]...)...)
	}
}

func (g *catsGen) pick(weights []float64) int {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	x := g.r.Float64() * sum
	last := 0
	for i, w := range weights {
		if w > 0 {
			last = i
		}
		if x -= w; x < 0 {
			return i
		}
	}
	return last
}

// grow adds neighbours, and with a small probability any good, up to a size.
func (g *catsGen) grow(w [][]float64, private []float64, jump float64, b []int, size int) []int {
	for size = min(size, g.goods); len(b) < size; {
		next, any := make([]float64, g.goods), false
		far := g.r.Float64() < jump
		for _, x := range b {
			for y := range next {
				v := w[x][y] * private[y]
				if far {
					v = 1
				}
				if v > 0 && !slices.Contains(b, y) {
					next[y] += v
					any = true
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
	cities := max(4, g.goods*2/5)
	x, y := make([]float64, cities), make([]float64, cities)
	for i := range x {
		x[i], y[i] = g.r.Float64(), g.r.Float64()
	}
	dist := func(a, b int) float64 { return math.Hypot(x[a]-x[b], y[a]-y[b]) }
	roads, out := g.roads(cities, dist)
	for g.wanting() {
		from, to := g.r.IntN(cities), g.r.IntN(cities)
		if from == to {
			continue
		}
		worth := dist(from, to) * (1 + g.r.Float64()/2)
		steps := 0
		var list []catsBundle
		var walk func(at int, length float64, way, seen []int)
		walk = func(at int, length float64, way, seen []int) {
			if steps++; length+dist(at, to) > worth || steps > 20_000 {
				return
			}
			if at == to {
				list = append(list, catsBundle{price: 1000 * (worth - length), goods: slices.Clone(way)})
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
		g.add(list[:min(len(list), 5)]...)
	}
}

// roads builds roads from each city to the two nearest, and then along the cheapest ways
// between random ones, on which a new road costs 1.7 times its length. It returns them by
// number, and their numbers by city.
func (g *catsGen) roads(cities int, dist func(a, b int) float64) (roads [][2]int, out [][]int) {
	number, out := map[[2]int]int{}, make([][]int, cities)
	build := func(a, b int) bool {
		key := [2]int{min(a, b), max(a, b)}
		if _, ok := number[key]; ok || len(roads) == g.goods {
			return false
		}
		number[key] = len(roads)
		out[a], out[b] = append(out[a], len(roads)), append(out[b], len(roads))
		roads = append(roads, key)
		return true
	}
	for a := range cities {
		near := g.r.Perm(cities)
		slices.SortFunc(near, func(p, q int) int { return cmp.Compare(dist(a, p), dist(a, q)) })
		build(a, near[1])
		build(a, near[2])
	}
	for idle := 0; len(roads) < g.goods && idle < 10*cities; idle++ {
		for way := cheapest(g.r.IntN(cities), g.r.IntN(cities), cities, func(a, b int) float64 {
			if _, ok := number[[2]int{min(a, b), max(a, b)}]; ok {
				return dist(a, b)
			}
			return 1.7 * dist(a, b)
		}); len(way) > 1; way = way[1:] {
			if build(way[0], way[1]) {
				idle = 0
			}
		}
	}
	return roads, out
}

// cheapest is the way of the least sum.
func cheapest(from, to, cities int, cost func(a, b int) float64) []int {
	best, via, done := make([]float64, cities), make([]int, cities), make([]bool, cities)
	for i := range best {
		best[i] = math.Inf(1)
	}
	best[from], via[from] = 0, -1
	for {
		at := -1
		for i := range best {
			if !done[i] && (at < 0 || best[i] < best[at]) {
				at = i
			}
		}
		if done[at] = true; at == to {
			break
		}
		for i := range best {
			if c := best[at] + cost(at, i); !done[i] && c < best[i] {
				best[i], via[i] = c, at
			}
		}
	}
	way := []int{to}
	for at := via[to]; at >= 0; at = via[at] {
		way = append(way, at)
	}
	return way
}

// matching has airlines that need a slot to start at one of four airports and one to land at
// another.
func (g *catsGen) matching() {
	x, y := []float64{-87.75, -77.03, -73.78, -73.87}, []float64{41.98, 38.85, 40.65, 40.77}
	times, cost := g.goods/4, []float64{g.r.Float64(), g.r.Float64(), g.r.Float64(), g.r.Float64()}
	dist := func(a, b int) float64 { return math.Hypot(x[a]-x[b], y[a]-y[b]) }
	for g.wanting() {
		a, b := g.r.IntN(4), g.r.IntN(4)
		if a == b || a+b == 5 { // the last two are in one city
			continue
		}
		length := int(math.Round(float64(min(10, times-1)) * dist(a, b) / dist(0, 3)))
		start, dev := 1+g.r.IntN(max(times-length, 1)), 0.5+g.r.Float64()
		var list []catsBundle
		for up := max(1, start-1); up <= min(times, start+2); up++ {
			for down := up + length; down <= min(start+length+2, times); down++ {
				late, delay := max(down-start-length, 0), down-up-length
				v := 5 * dev * (cost[a] + cost[b]) * math.Pow(0.9, float64(delay)) * math.Pow(0.75, float64(late))
				list = append(list, catsBundle{price: v, goods: []int{(up-1)*4 + a, (down-1)*4 + b}})
			}
		}
		g.add(list...)
	}
}

// scheduling has jobs that need some hours in a row, before one of several deadlines.
func (g *catsGen) scheduling() {
	for g.wanting() {
		length := 1 + g.r.IntN(10)
		first := length - 1 + g.r.IntN(g.goods-length+1)
		dev, last := 0.5+g.r.Float64(), -1
		var list []catsBundle
		for deadline := first; ; deadline = last + 1 + g.r.IntN(g.goods-last-1) {
			for start := max(0, last-length+2); start+length-1 <= deadline; start++ {
				b := make([]int, length)
				for i := range b {
					b[i] = start + i
				}
				v := dev * math.Pow(float64(length), 1.2) * float64(first) / float64(max(deadline, 1))
				list = append(list, catsBundle{price: v, goods: b})
			}
			if last = deadline; last == g.goods-1 || g.r.Float64() > 0.7 {
				break
			}
		}
		g.add(list...)
	}
}

// writeSuite writes instances of every kind: 66 of up to 64 goods, 44 of up to 256.
func writeSuite(t *testing.T, dir string) {
	t.Helper()
	for _, kind := range catsKinds() {
		for _, size := range [][2]int{{20, 100}, {40, 150}, {64, 200}, {128, 250}, {256, 500}} {
			for seed := uint64(1); seed <= 2; seed++ {
				name := filepath.Join(dir, fmt.Sprintf("%03d-%s-%d.txt", size[0], kind, seed))
				if err := os.WriteFile(name, []byte(generateCATS(kind, seed, size[0], size[1])), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestTheSuiteIsWritten writes the instances of docs/PERFORMANCE.md below RAMP_CATS.
func TestTheSuiteIsWritten(t *testing.T) {
	dir := os.Getenv("RAMP_CATS")
	if dir == "" {
		t.Skip("RAMP_CATS names no directory")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writeSuite(t, dir)
}
