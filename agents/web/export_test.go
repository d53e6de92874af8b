package web

import (
	"runtime"
	"sync"
)

// OwnerIn is ownerIn.
var OwnerIn = ownerIn

// AskOwners asks for the owners of n connections while the table is being read, and returns how often
// it was read in all.
func AskOwners(n int64) (readings int) {
	reading, proceed := make(chan bool), make(chan bool)
	o := owners{read: func() string { readings++; reading <- true; <-proceed; return "" }}
	var asking sync.WaitGroup
	ask := func() { asking.Go(func() { o.now(o.asked.Add(1)) }) }
	ask()
	<-reading
	for range n {
		ask()
	}
	for o.asked.Load() <= n {
		runtime.Gosched()
	}
	go func() {
		for range reading {
			proceed <- true
		}
	}()
	proceed <- true
	asking.Wait()
	close(reading)
	return readings
}
