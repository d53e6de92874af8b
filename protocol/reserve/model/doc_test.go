// Package model_test has spin check models of the commit protocol: RAMP's own
// (commit.pml), which must hold, each of its mutants, which must not, and the
// source's (source.pml), which sells one unit and frees the other.
//
// The models say what they stand for; docs/MODEL.md explains them. The tests
// skip where spin or a C compiler is absent. RAMP_MODEL=full adds three sellers,
// which takes minutes and 2.3 GB.
package model_test
