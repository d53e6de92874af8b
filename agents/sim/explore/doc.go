// Package explore searches for a seed with which a market breaks an invariant, and for the
// smallest market that it still breaks.
//
// Run runs one market. Explore runs many in parallel. Shrink takes a market that breaks an
// invariant, and removes agents, time and faults as long as the same one still breaks. A
// Scenario is a market in a file, for another run.
package explore
