package boltfile

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Guard turns what a damaged file does to bbolt — assertions and faults in the
// mapping — into an error.
func Guard(f func() error) error {
	never := false
	return GuardExcept(&never, f)
}

// GuardExcept lets panics through while foreign code is being called: they are
// not the file's.
func GuardExcept(calling *bool, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if *calling {
				panic(r)
			}
			err = fmt.Errorf("damaged: %s", fault(r))
		}
	}()
	return f()
}

// fault puts what was recovered into words. The runtime calls a page that the
// file does not have any more a bad pointer.
func fault(r any) string {
	if _, ok := r.(runtime.Error); ok {
		return fmt.Sprintf("a page is missing or makes no sense (%v)", r)
	}
	return fmt.Sprint(r)
}
