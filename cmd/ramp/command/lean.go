package command

import (
	"os"
	"runtime"
	"runtime/debug"
)

// leanGC is the garbage collector's target of sellers and users, in per cent:
// their heaps are small, and the usual 100 collects several times per second
// where auctions are many.
const leanGC = 200

// lean fits a process to one conversation after the other, which is all that
// sellers and users do. A second thread would only take turns with the first: on
// a busy machine waking it costs more than what it does. Who sets GOMAXPROCS or
// GOGC knows better.
func lean() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(leanGC)
	}
}
