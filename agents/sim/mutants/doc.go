// Package mutants proves that the checks of the simulator can fail. Each file in testdata is a
// patch that adds one mistake to the program, of a kind known from similar protocols. Its first
// lines describe the mistake, the invariant that it breaks and the adversaries that it needs.
//
// Patches are never applied to the program itself. The test applies each to a copy of the
// files that it changes, builds itself with the copies, and runs that to search for a seed. A patch that no longer applies fails the test: update it to the changed code.
package mutants
