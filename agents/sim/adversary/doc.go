// Package adversary has the dishonest parties of a simulated market, one file
// each, and says nothing of what must hold against them: package market checks
// that, whoever is there.
//
// Most are an honest role with a bend in what it hears or says; they sign what
// they like, with a credential of their own. Each is a function that is given a
// market.Stage and puts its hosts onto it, and All is the one list of them. To add
// one: write such a function in a file of its own, give it a kind in All, and it
// is in `ramp sim run --adversaries KIND=1`, in scenario files, and in this
// package's tests.
package adversary
