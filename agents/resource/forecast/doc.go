// Package forecast learns from a site's own past how long its jobs wait and how
// long they really run, with a stated confidence, by the method of QBETS (Nurmi, Brevik,
// Wolski 2008; specs §1.6, 002 §6.2.2).
//
// It assumes no distribution. The upper bound on a quantile is one of the observed
// waits, chosen by the binomial distribution. When several waits in a row exceed it, the
// package drops the past and keeps the most recent waits alone. So there is no bound
// until LeastHistory jobs of a size have started.
//
//	job starts -> Started -> history of its size -> Bound, StartWithin
//	job ends   -> Ended   -> history of its size -> BusyUntil
//
// It decides without I/O and never reads a clock: all times are whole seconds, and it learns a wait
// when the job starts, never before. The same observations in the same order give the same answers,
// also across Encode and Decode. An observation and a query take about a microsecond each.
// Histories are bounded by MaxHistory. Nothing here is safe for concurrent use.
package forecast
