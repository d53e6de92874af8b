package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ramp/agents/mesh"
)

// PeersName is the file of the peers that an agent has met, one address per line. It
// brings the agent back into the market when no address under 'bootstrap' answers.
const PeersName = "peers"

// maxPeersFile bounds what is read of it.
const maxPeersFile = 256 << 10

// Peers is the file of an agent's peers.
func (c *Config) Peers() mesh.Peers { return peersFile(filepath.Join(c.Dir, PeersName)) }

type peersFile string

// Load reads the addresses; without the file there are none.
func (p peersFile) Load() ([]string, error) {
	f, err := os.Open(string(p))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPeersFile))
	return strings.Fields(string(b)), err
}

func (p peersFile) Save(addresses []string) error {
	return ReplaceFile(string(p), []byte(strings.Join(addresses, "\n")+"\n"), 0o600)
}
