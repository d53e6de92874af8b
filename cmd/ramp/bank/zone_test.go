package bank

import (
	"testing"
	"time"
)

// The times that tests expect are in UTC wherever they run.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	m.Run()
}
