//go:build race

package ledgerdb_test

// underRace: the race detector looks on.
const underRace = true
