// Package experiment reproduces the experiments of 002 (sections 8-12) and goes
// beyond them: the agents of the live system, with their bytes and signatures,
// under virtual time, over machines that are workload logs.
//
// An experiment makes worlds of its own, one for each independent run, and says
// what came out: every run as a row, figures, and whether the shapes that the
// source found hold. The same seed, settings and logs give the same rows, however
// many runs go on side by side. Nothing in it is fitted to the source: resources,
// jobs and prices are those of its tables, and what had to be substituted is told.
//
//	Lab --gather--> runs, each a stage (a World) --> rows --> Result: tables, figures, shapes
//	Result --Write--> CSV, SVG, PNG, Markdown; Index --> one page of all
package experiment
