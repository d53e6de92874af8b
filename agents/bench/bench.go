package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"ramp/agents/exit"
)

// ParseCounts reads a list such as 1,4,16 of positive numbers.
func ParseCounts(flag, s string, most int) ([]int, error) {
	var list []int
	for _, f := range strings.Split(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 1 || n > most {
			return nil, exit.Fail(exit.Usage, "", "%s %q: want numbers in 1..%d with commas between", flag, s, most)
		}
		list = append(list, n)
	}
	return list, nil
}

// Quantile is the value below which a share q of the sorted samples lies.
func Quantile(samples []time.Duration, q float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(samples))
	return float64(s[min(len(s)-1, int(q*float64(len(s))))].Microseconds()) / 1000
}

func Millis(f float64) string { return fmt.Sprintf("%.2f", f) }

// ThreeCommits is the median time of three bbolt transactions in sequence.
func ThreeCommits(path string) (float64, error) {
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	var times []time.Duration
	for i := range 100 {
		begun := time.Now()
		for j := range 3 {
			err := db.Update(func(tx *bbolt.Tx) error {
				bucket, err := tx.CreateBucketIfNotExists([]byte("b"))
				if err != nil {
					return err
				}
				return bucket.Put(fmt.Appendf(nil, "%d-%d", i, j), make([]byte, 1024))
			})
			if err != nil {
				return 0, err
			}
		}
		times = append(times, time.Since(begun))
	}
	return Quantile(times, 0.5), nil
}
