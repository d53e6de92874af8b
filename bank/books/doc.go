// Package books tells what a bank's entries say in other forms: a report of
// turnover, prices and accounts, and a journal for programs of plain-text
// accounting.
//
// It is handed entries in order of number, with their legs filled in, and holds
// sums, and the contracts that are open, and no entries: the history may be long. The same entries give the same
// report and the same journal. It never reads a clock, a file or a store.
package books

// Bounds of a report.
const (
	MaxPeriods = 10_000  // periods that are told; ask for longer ones, or a shorter while
	MaxTop     = 1000    // accounts that are told
	maxPrices  = 1 << 16 // prices that a median is taken of; of more, evenly spaced ones
)
