package sim

import (
	"math/rand/v2"
	"time"
)

// Chance is a seeded source of random numbers. It computes with integers only, so that
// every machine draws the same.
type Chance struct{ r *rand.Rand }

// NewChance returns the source number stream of a seed. Streams are independent.
func NewChance(seed, stream uint64) Chance { return Chance{rand.New(rand.NewPCG(seed, stream))} }

// N draws a number in 0..n-1; 0 if n is below 2.
func (c Chance) N(n int) int {
	if n < 2 {
		return 0
	}
	return c.r.IntN(n)
}

// Of draws true with a probability in thousandths.
func (c Chance) Of(perMille int) bool { return perMille > 0 && c.r.IntN(1000) < perMille }

// In draws a number in a range, both ends included.
func (c Chance) In(r Range) int { return r.Least + c.N(r.Most-r.Least+1) }

// For draws a duration in a span, both ends included.
func (c Chance) For(s Span) time.Duration {
	if s.Most <= s.Least {
		return s.Least
	}
	return s.Least + time.Duration(c.r.Int64N(int64(s.Most-s.Least)+1))
}

// Skewed draws a duration in a span, equally often from each of its halvings: mostly
// short, sometimes close to the maximum, like real outages.
func (c Chance) Skewed(s Span) time.Duration {
	s.Most = s.Least + (s.Most-s.Least)>>c.N(halvings)
	return c.For(s)
}

// halvings of a span that Skewed distinguishes.
const halvings = 14

// Around draws from a log-normal distribution (sigma 0.6) with a mean, like the delays of networks.
func (c Chance) Around(mean time.Duration) time.Duration { return c.scaled(mean, &logNormal) }

// Longest is the longest delay that Around draws for a mean.
func Longest(mean time.Duration) time.Duration {
	return mean / 1000 * time.Duration(logNormal[len(logNormal)-1])
}

// Waiting draws from an exponential distribution with a mean: the time to the next of
// independent events.
func (c Chance) Waiting(mean time.Duration) time.Duration { return c.scaled(mean, &exponential) }

// scaled draws between two neighbouring quantiles, given in thousandths of the mean.
func (c Chance) scaled(mean time.Duration, quantiles *[128]int64) time.Duration {
	i := c.r.IntN(len(quantiles) - 1)
	low, high := quantiles[i], quantiles[i+1]
	q := low*1000 + c.r.Int64N((high-low)*1000+1)
	return time.Duration(int64(mean) / 1000 * q / 1000)
}

// The mid-point quantiles of both distributions, in thousandths of the mean.
var (
	logNormal = [128]int64{
		170, 215, 243, 264, 283, 299, 314, 327, 340, 352, 363, 374, 385, 395, 405, 415, 425, 434, 443, 452, 461, 470, 479, 487, 496, 505, 513, 521, 530, 538, 546, 555,
		563, 571, 579, 587, 596, 604, 612, 620, 629, 637, 645, 654, 662, 670, 679, 687, 696, 705, 713, 722, 731, 740, 748, 757, 767, 776, 785, 794, 804, 813, 823, 833,
		842, 852, 862, 873, 883, 893, 904, 915, 926, 937, 948, 960, 971, 983, 995, 1008, 1020, 1033, 1046, 1059, 1073, 1087, 1101, 1115, 1130, 1146, 1161, 1177, 1194, 1211, 1228, 1246,
		1264, 1284, 1303, 1324, 1345, 1367, 1390, 1414, 1439, 1464, 1492, 1520, 1550, 1582, 1616, 1651, 1689, 1730, 1774, 1821, 1873, 1930, 1993, 2064, 2144, 2237, 2346, 2481, 2652, 2888, 3262, 4131,
	}
	exponential = [128]int64{
		4, 12, 20, 28, 36, 44, 52, 61, 69, 77, 86, 94, 103, 112, 121, 129, 138, 147, 157, 166, 175, 184, 194, 203, 213, 223, 233, 243, 253, 263, 273, 283,
		294, 304, 315, 326, 337, 348, 359, 370, 381, 393, 405, 416, 428, 440, 453, 465, 478, 490, 503, 516, 529, 543, 556, 570, 584, 598, 612, 627, 642, 657, 672, 687,
		703, 719, 735, 751, 768, 785, 802, 820, 838, 856, 875, 894, 913, 933, 953, 973, 994, 1015, 1037, 1059, 1082, 1106, 1129, 1154, 1179, 1205, 1231, 1258, 1286, 1315, 1344, 1375,
		1406, 1438, 1472, 1506, 1542, 1579, 1618, 1658, 1700, 1743, 1789, 1837, 1887, 1940, 1995, 2054, 2117, 2184, 2255, 2333, 2416, 2507, 2608, 2719, 2845, 2988, 3156, 3357, 3609, 3946, 4459, 5560,
	}
)
