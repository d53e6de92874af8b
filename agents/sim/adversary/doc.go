// Package adversary has the dishonest parties of a simulated market, one file each. Package
// market checks that its invariants hold against all of them.
//
// Most are an honest role whose messages are intercepted in one direction or both. They sign what
// they like, with credentials of their own. Each is a function that adds its hosts to a
// market.Stage. To add one, write such a function in a new file and give it a kind in All: `ramp
// sim run --adversaries KIND=1`, scenario files and this package's tests then include it.
package adversary
