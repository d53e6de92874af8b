package control_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A call of 100 MB on the control socket is refused when its bound is read, and not after.
func TestACallThatIsTooLongIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	const long = 100 << 20
	body := &counted{r: io.MultiReader(strings.NewReader(`{"document":"`), io.LimitReader(letters{}, long), strings.NewReader(`"}`))}
	answer := httptest.NewRecorder()
	echo().ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/v1/buy", body))
	if answer.Code != http.StatusUnprocessableEntity || !strings.Contains(answer.Body.String(), "over 8 MiB") {
		t.Errorf("answered %d: %.200s", answer.Code, answer.Body)
	}
	if body.n > 16<<20 {
		t.Errorf("%d bytes were read", body.n)
	}
}

// letters are as many as are read.
type letters struct{}

func (letters) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// counted counts what is read.
type counted struct {
	r io.Reader
	n int
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += n
	return n, err
}
