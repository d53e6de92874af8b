// Package experiment reproduces the experiments of 002 (sections 8-12) and adds others. It
// runs the agents of the live system, with their bytes and signatures, in virtual time, on
// machines that play workload logs.
//
// An experiment creates a world for each independent run and reports every run as a row, figures,
// and whether the shapes that the source found hold. The same seed, settings and logs give the same
// rows, no matter how many runs are parallel. Nothing is fitted to the source: resources, jobs and
// prices come from its tables, and reports list every substitution.
//
//	Lab --gather--> runs, each a stage (a World) --> rows --> Result: tables, figures, shapes
//	Result --Write--> CSV, SVG, PNG, Markdown; Index --> one page of all
package experiment
