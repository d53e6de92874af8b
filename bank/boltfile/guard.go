package boltfile

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Guard turns the panics of bbolt on a damaged file, assertions and faults in the
// mapping, into an error.
func Guard(f func() error) error {
	never := false
	return guardExcept(&never, f)
}

// guardExcept lets panics through while foreign code is being called: they are not the file's.
func guardExcept(calling *bool, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if *calling {
				panic(r)
			}
			err = fmt.Errorf("%w: %s", ErrDamaged, fault(r))
		}
	}()
	return f()
}

// fault describes a recovered panic. The runtime reports a page that is missing from the
// file as a bad pointer.
func fault(r any) string {
	if _, ok := r.(runtime.Error); ok {
		return fmt.Sprintf("a page is missing or makes no sense (%v)", r)
	}
	return fmt.Sprint(r)
}
