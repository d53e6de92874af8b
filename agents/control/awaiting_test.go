package control_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"ramp/agents/control"
)

// A bank that is stopped takes a question and never answers.
func TestAQuestionToTheBanksEnds(t *testing.T) {
	silent := func(ctx context.Context, _ control.None) (control.None, error) {
		<-ctx.Done()
		return control.None{}, ctx.Err()
	}
	if _, err := control.Within(time.Millisecond, silent)(t.Context(), control.None{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ends with %v", err)
	}
}
