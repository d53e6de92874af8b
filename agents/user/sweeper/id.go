package sweeper

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"ramp/protocol/message"
)

// Below is an input of a plan, whose path is relative to a directory.
func Below(dir, spec string) string {
	path, name, named := strings.Cut(spec, "=")
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if named {
		return path + "=" + name
	}
	return path
}

// ID is the same for the same plan, inputs and directory.
func ID(name string, o message.SweepOrder) string {
	b, err := json.Marshal([]any{o.Plan, o.Out, o.Inputs})
	if err != nil {
		panic(fmt.Sprintf("sweeper: a sweep's inputs cannot be encoded: %v", err)) // strings and numbers only
	}
	sum := sha256.Sum256(b)
	return name + "-" + hex.EncodeToString(sum[:4])
}
