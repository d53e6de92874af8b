package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ramp/agents/exit"
	"ramp/agents/mesh"
	"ramp/agents/node"
	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// StageFigures are the rates of one run; the names are fixed. A MB is 10^6 bytes.
type StageFigures struct {
	Bytes    int64   `json:"bytes"` // of the file
	Runs     int     `json:"runs"`
	Put      float64 `json:"put_mb_s"`
	Get      float64 `json:"get_mb_s"`
	Bare     float64 `json:"bare_mb_s"`
	PutShare float64 `json:"put_share"` // of bare
	GetShare float64 `json:"get_share"`
}

// Bounds of the benchmark.
const (
	MaxStageSize = 16 << 10 // MiB
	MaxStageRuns = 1000
)

func MeasureStage(ctx context.Context, size int64, runs int, dir string) (f StageFigures, err error) {
	place, err := os.MkdirTemp(dir, "ramp-stage-")
	if err != nil {
		return f, exit.Fail(exit.Failed, "", "%w", err)
	}
	b := &stageBench{dir: place}
	defer func() { err = errors.Join(err, b.end(), os.RemoveAll(place)) }()
	if err := b.start(ctx, size); err != nil {
		return f, err
	}
	f = StageFigures{Bytes: size, Runs: runs}
	if f.Put, f.Get, f.Bare, err = b.measure(ctx, runs); err != nil {
		return f, err
	}
	f.PutShare, f.GetShare = f.Put/f.Bare, f.Get/f.Bare
	return f, nil
}

// stageBench is a buyer and a site with one job, in one process.
type stageBench struct {
	dir   string
	site  *mesh.Mesh
	buyer *mesh.Mesh
	depot *stage.Depot
	input message.RunInput
	job   int // the number of the job that is staged
	halt  func()
}

func (b *stageBench) start(ctx context.Context, size int64) error {
	source := filepath.Join(b.dir, "source")
	if err := writeNoise(source, size); err != nil {
		return exit.Fail(exit.Failed, "", "%w", err)
	}
	file, err := stage.Describe(source, "file")
	if err != nil {
		return err
	}
	b.input = message.RunInput{File: file, Source: source}
	keys, err := newBenchKeys(2, time.Now())
	if err != nil {
		return err
	}
	b.depot = stage.NewDepot(stage.DepotConfig{Agent: keys.agents[0].ID, Root: filepath.Join(b.dir, "jobs"), Grant: b.grant, Log: slog.New(slog.DiscardHandler)})
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); b.depot.Run(life, func(protocol.Message) {}) }()
	b.halt = func() { stop(); <-done }
	if b.site, err = stageMesh(keys, keys.agents[0], nil, b.serve); err != nil {
		return err
	}
	b.buyer, err = stageMesh(keys, keys.agents[1], b.site.Addresses(), nil)
	return err
}

// writeNoise writes incompressible bytes.
func writeNoise(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{}), size)
	return errors.Join(err, f.Close())
}

func stageMesh(k *benchKeys, cred *identity.Credential, bootstrap []string, files func(*mesh.Stream) error) (*mesh.Mesh, error) {
	return mesh.Listen(mesh.Config{
		Credential: cred, Trust: k.trust, Codec: node.Wire{Opener: codec.NewOpener(k.trust, node.VerifiedBundles)},
		Deliver: func(protocol.Message) error { return nil }, Bootstrap: bootstrap, Files: files,
	})
}

func (b *stageBench) name() string { return fmt.Sprintf("job%d", b.job) }

func (b *stageBench) grant(context.Context, protocol.AgentID, stage.Key) (stage.Grant, error) {
	files := []protocol.StagedFile{b.input.File}
	return stage.Grant{Job: b.name(), Staging: true, Inputs: files, Outputs: files}, nil
}

// bareMark begins a bare stream, and no request.
const bareMark = 0xff

// marked is a stream whose first byte was read.
type marked struct {
	*mesh.Stream
	first []byte
}

// Read reads the first byte once more, and then what follows it.
func (m *marked) Read(p []byte) (int, error) {
	if len(m.first) > 0 {
		n := copy(p, m.first)
		m.first = m.first[n:]
		return n, nil
	}
	return m.Stream.Read(p)
}

// serve answers file requests and discards bare bytes.
func (b *stageBench) serve(s *mesh.Stream) error {
	m := &marked{s, make([]byte, 1)}
	if _, err := io.ReadFull(s, m.first); err != nil {
		return err
	}
	if m.first[0] != bareMark {
		return b.depot.Serve(context.Background(), s.Agent(), m, s.Refused)
	}
	if _, err := io.CopyBuffer(onlyWriter{io.Discard}, s, make([]byte, bareBuffer)); err != nil {
		return err
	}
	_, err := s.Write([]byte{bareMark})
	return err
}

const bareBuffer = 256 << 10

// onlyWriter hides a writer's other methods, so that io.Copy uses its buffer.
type onlyWriter struct{ io.Writer }

// measure measures in turns and returns the medians in MB per second.
func (b *stageBench) measure(ctx context.Context, runs int) (put, get, bare float64, err error) {
	s, err := b.open(ctx)
	if err != nil {
		return 0, 0, 0, err
	}
	defer s.Close() //nolint:errcheck // all was read
	var rates [3][]float64
	for range runs {
		for i, f := range []func(context.Context, stage.Stream) error{b.put, b.get, b.bare} {
			if err := b.clear(); err != nil {
				return 0, 0, 0, err
			}
			begun := time.Now()
			if err := f(ctx, s); err != nil {
				return 0, 0, 0, err
			}
			rates[i] = append(rates[i], float64(b.input.File.Size)/1e6/time.Since(begun).Seconds())
		}
	}
	return middle(rates[0]), middle(rates[1]), middle(rates[2]), nil
}

func middle(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// open waits until the agents know each other.
func (b *stageBench) open(ctx context.Context) (*mesh.Stream, error) {
	if err := b.buyer.Joined(ctx); err != nil {
		return nil, err
	}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for range 1000 {
		s, err := b.buyer.OpenFiles(ctx, b.site.Self())
		if !errors.Is(err, mesh.ErrUnknownAgent) {
			return s, err
		}
		<-again.C
	}
	return nil, exit.Fail(exit.Failed, "", "the two agents did not find each other")
}

// clear removes files of earlier transfers, except the job to fetch from.
func (b *stageBench) clear() error {
	before := filepath.Join(b.dir, "jobs", fmt.Sprintf("job%d", b.job-1))
	return errors.Join(os.RemoveAll(before), os.RemoveAll(b.out()))
}

func (b *stageBench) out() string { return filepath.Join(b.dir, "out") }

func (b *stageBench) put(_ context.Context, s stage.Stream) error {
	b.job++
	for _, dir := range []string{"work", "part"} {
		if err := os.MkdirAll(filepath.Join(b.dir, "jobs", b.name(), dir), 0o700); err != nil {
			return err
		}
	}
	return stage.Put(s, stage.Key{}, b.input)
}

func (b *stageBench) get(_ context.Context, s stage.Stream) error {
	out := b.out()
	if err := os.Mkdir(out, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(out)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it holds nothing back
	return stage.Get(s, stage.Key{}, b.input.File, root)
}

// bare sends as many bytes over a plain stream and waits until they have arrived.
func (b *stageBench) bare(ctx context.Context, _ stage.Stream) error {
	s, err := b.buyer.OpenFiles(ctx, b.site.Self())
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // all was read
	piece := make([]byte, bareBuffer)
	piece[0] = bareMark
	for left := b.input.File.Size; left > 0; left -= int64(len(piece)) {
		if _, err := s.Write(piece[:min(int64(len(piece)), left)]); err != nil {
			return err
		}
	}
	if err := s.CloseWrite(); err != nil {
		return err
	}
	_, err = io.ReadFull(s, piece[:1])
	return err
}

func (b *stageBench) end() error {
	var err error
	for _, m := range []*mesh.Mesh{b.buyer, b.site} {
		if m != nil {
			err = errors.Join(err, m.Close())
		}
	}
	if b.halt != nil {
		b.halt()
	}
	return err
}
