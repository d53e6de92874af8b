// Package testdata has files that more than one package uses.
package testdata

import "embed"

// Logs are the synthetic workload logs that the demonstration replays; 'ramp swf
// synth --demo testdata/swf' made them.
//
//go:embed swf
var Logs embed.FS
