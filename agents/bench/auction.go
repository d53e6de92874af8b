package bench

import (
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

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
