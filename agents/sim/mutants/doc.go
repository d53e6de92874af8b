// Package mutants proves that the checks of the simulator can fail. Each file in
// testdata is a patch that puts one mistake into the program: the mistakes that
// protocols such as ours are known to make. Its first lines say what the mistake
// is, which invariant it breaks, and which adversaries it needs.
//
// No patch is ever applied to the program itself. The test applies each to a copy
// of the files that it changes, builds package hunt with those in place of the
// real ones, and has it look for a seed. A patch that does not apply any more
// fails the test: the code it was made for has changed, and so must the patch.
package mutants
