// Package explore looks for a seed that breaks a market, and for the smallest
// market that it still breaks.
//
// Run lives through one market. Explore lives through many, side by side, each in
// a goroutine of its own. Shrink takes a market that broke and leaves away
// agents, time and faults as long as the same invariant still breaks. A Scenario
// is a market in a file, to be lived through again.
package explore
