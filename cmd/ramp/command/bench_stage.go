package command

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

	"github.com/spf13/cobra"

	"ramp/agents/mesh"
	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// stageFigures are the rates of one run; the names are fixed. A MB is 10^6 bytes.
type stageFigures struct {
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
	maxStageSize = 16 << 10 // MiB
	maxStageRuns = 1000
)

func newBenchStage() *cobra.Command {
	var size, runs int
	var dir string
	c := &cobra.Command{
		Use: "stage", Short: "Bytes per second of files to and from a site, beside a bare stream", Args: cobra.NoArgs,
		Long: `Brings a file from one agent to another and fetches it back, as the inputs and outputs
of jobs travel: both sides with their certificates, hashed, and flushed to the disk.
'bare' is as many bytes over a stream of the same connection, from memory to nowhere.
Medians of all runs, which take turns.`,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case size < 1 || size > maxStageSize:
				return fail(exitUsage, "", "--size %d: want 1..%d MiB", size, maxStageSize)
			case runs < 1 || runs > maxStageRuns:
				return fail(exitUsage, "", "--runs %d: want 1..%d", runs, maxStageRuns)
			}
			return benchStage(c, int64(size)<<20, runs, dir)
		},
	}
	c.Flags().IntVar(&size, "size", 256, "MiB of the file")
	c.Flags().IntVar(&runs, "runs", 5, "runs of each kind")
	c.Flags().StringVar(&dir, "dir", "", "keep the files below this directory while it runs (default: a temporary one)")
	return c
}

func benchStage(c *cobra.Command, size int64, runs int, dir string) (err error) {
	place, err := os.MkdirTemp(dir, "ramp-stage-")
	if err != nil {
		return fail(exitFailed, "", "%w", err)
	}
	b := &stageBench{dir: place}
	defer func() { err = errors.Join(err, b.end(), os.RemoveAll(place)) }()
	if err := b.start(c.Context(), size); err != nil {
		return err
	}
	f := stageFigures{Bytes: size, Runs: runs}
	if f.Put, f.Get, f.Bare, err = b.measure(c.Context(), runs); err != nil {
		return err
	}
	f.PutShare, f.GetShare = f.Put/f.Bare, f.Get/f.Bare
	if wantsJSON(c) {
		return printJSON(stdout(c), f)
	}
	rate := func(r float64) string { return fmt.Sprintf("%.0f", r) }
	table(stdout(c), []string{"MiB", "runs", "put MB/s", "get MB/s", "bare MB/s", "put / bare", "get / bare"},
		[]string{fmt.Sprint(size >> 20), fmt.Sprint(runs), rate(f.Put), rate(f.Get), rate(f.Bare), fmt.Sprintf("%.2f", f.PutShare), fmt.Sprintf("%.2f", f.GetShare)})
	return nil
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

// start makes the file and lets both sides find each other.
func (b *stageBench) start(ctx context.Context, size int64) error {
	source := filepath.Join(b.dir, "source")
	if err := writeNoise(source, size); err != nil {
		return fail(exitFailed, "", "%w", err)
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

// writeNoise writes bytes that nothing packs.
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
		Credential: cred, Trust: k.trust, Codec: wire{Opener: codec.NewOpener(k.trust, verifiedBundles)},
		Deliver: func(protocol.Message) error { return nil }, Bootstrap: bootstrap, Files: files,
	})
}

func (b *stageBench) name() string { return fmt.Sprintf("job%d", b.job) }

func (b *stageBench) grant(context.Context, protocol.AgentID, stage.Key) (stage.Grant, error) {
	files := []protocol.StagedFile{b.input.File}
	return stage.Grant{Job: b.name(), Staging: true, Inputs: files, Outputs: files}, nil
}

// bareMark begins a bare stream; no request does.
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

// serve answers files, and takes bare bytes to nowhere.
func (b *stageBench) serve(s *mesh.Stream) error {
	m := &marked{s, make([]byte, 1)}
	if _, err := io.ReadFull(s, m.first); err != nil {
		return err
	}
	if m.first[0] != bareMark {
		return b.depot.Serve(context.Background(), s.Agent(), m)
	}
	if _, err := io.CopyBuffer(onlyWriter{io.Discard}, s, make([]byte, bareBuffer)); err != nil {
		return err
	}
	_, err := s.Write([]byte{bareMark})
	return err
}

const bareBuffer = 256 << 10

// onlyWriter hides what else a writer can do: the buffer is used.
type onlyWriter struct{ io.Writer }

// measure takes turns, and returns the medians in MB per second.
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
	return nil, fail(exitFailed, "", "the two agents do not find each other")
}

// clear removes what transfers before have left but the job that is fetched from.
func (b *stageBench) clear() error {
	before := filepath.Join(b.dir, "jobs", fmt.Sprintf("job%d", b.job-1))
	return errors.Join(os.RemoveAll(before), os.RemoveAll(b.out()))
}

func (b *stageBench) out() string { return filepath.Join(b.dir, "out") }

// put brings the file to a new job.
func (b *stageBench) put(_ context.Context, s stage.Stream) error {
	b.job++
	for _, dir := range []string{"work", "part"} {
		if err := os.MkdirAll(filepath.Join(b.dir, "jobs", b.name(), dir), 0o700); err != nil {
			return err
		}
	}
	return stage.Put(s, stage.Key{}, b.input)
}

// get fetches it into an empty directory.
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

// bare sends as many bytes over a stream of its own, until they have arrived.
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
