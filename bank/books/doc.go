// Package books converts a bank's entries to other forms: a report of turnover, prices
// and accounts, and a journal for plain-text accounting.
//
// It takes entries in order of number, with their legs filled in, and keeps only sums
// and open contracts, because the history may be long. The same entries give the same
// report and the same journal. It never reads a clock, a file or a store.
package books

// Bounds of a report.
const (
	MaxPeriods = 10_000  // periods; beyond, ask for longer ones or a shorter time
	MaxTop     = 1000    // accounts listed
	maxPrices  = 1 << 16 // prices from which a median is computed; of more, evenly spaced ones
)
