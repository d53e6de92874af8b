package words

import (
	"context"
	"io"
	"os"

	"ramp/agents/exit"
)

// ReadInput reads a file, or standard input for "-", up to a bound. An interrupt ends it:
// nobody may ever write to a pipe or a terminal that is read.
func ReadInput(ctx context.Context, in io.Reader, path string, most int64) ([]byte, error) {
	type result struct {
		b   []byte
		err error
	}
	read := make(chan result, 1)
	go func() { // it is left behind when the program ends
		b, err := ReadBounded(in, path, most)
		read <- result{b, err}
	}()
	select {
	case r := <-read:
		return r.b, r.err
	case <-ctx.Done():
		return nil, exit.Fail(exit.Failed, "", "%s: interrupted, it was not read to its end", inputName(path))
	}
}

func inputName(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// ReadBounded reads a file, or in for "-" unless it is nil, up to a bound.
func ReadBounded(in io.Reader, path string, most int64) ([]byte, error) {
	if in == nil || path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, exit.Fail(exit.Usage, "", "%w", err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "%w", err)
	}
	if int64(len(b)) > most {
		return nil, exit.Fail(exit.Usage, "is it the right file?", "%s: more than %d bytes, the most that is read", path, most)
	}
	return b, nil
}
