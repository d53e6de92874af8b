package boltfile

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// LogEnd is the suffix of the name of a file's log.
const LogEnd = ".wal"

// A log begins with a page that names it: magic, version (1), length (8), salt (16), checksum (4).
// Frames follow, each at the beginning of a page, so that writing one touches no other:
//
//	checksum (4, CRC-32C of salt and what follows), length (4), state (16), position (8), operations
const (
	logMagic   = "ramp log"
	logVersion = 1
	logPage    = 4096
	logLength  = len(logMagic) + 1
	logSalt    = logLength + 8
	logHead    = logSalt + 16
	frameState = 8
	frameAt    = frameState + 16
	frameHead  = frameAt + 8
	mostLog    = 64 << 20
)

// wal is the log in front of a file: one flush makes a transaction durable before it is in
// the file.
type wal struct {
	f    *os.File
	size int64
	salt []byte // in every checksum: who sends values to store cannot make them look like frames
	end  int64  // of the frames
}

// state names a state of a file: its last transaction, and the sum of its description.
type state struct{ tx, sum uint64 }

// A strict file says that what follows its state is in its log: so it does not open without
// it. This mark is behind the description, where bbolt writes zeros: it ends with the state,
// and no copy has it that bbolt makes.
const markSize = len(logMagic) + 16

func (s state) mark() []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64([]byte(logMagic), s.tx), s.sum)
}

func describedBy(meta []byte) state {
	return state{binary.LittleEndian.Uint64(meta[metaTx:]), binary.LittleEndian.Uint64(meta[metaSum:])}
}

// stateOf is the state of the file at path, and whether it is marked.
func stateOf(path string) (s state, marked bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return s, false, err
	}
	defer f.Close()
	s, at, _, err := readState(f)
	if err != nil {
		return s, false, err
	}
	b := make([]byte, markSize)
	_, err = f.ReadAt(b, at)
	return s, bytes.Equal(b, s.mark()), err
}

// readState is the state of a file, and where its mark is and that of the state before.
func readState(f *os.File) (s state, at, before int64, err error) {
	m, err := newestMeta(f)
	if err != nil {
		return s, 0, 0, err
	}
	s = describedBy(m)
	end := func(page uint64) int64 {
		return int64((page+1)*uint64(binary.LittleEndian.Uint32(m[metaPage:]))) - int64(markSize)
	}
	return s, end(s.tx % 2), end(1 - s.tx%2), nil
}

// setMark marks the file at path, or removes its marks.
func setMark(path string, on bool) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	s, at, before, err := readState(f)
	if err != nil {
		return err
	}
	b := s.mark()
	if !on {
		clear(b)
		_, err = f.WriteAt(b, before)
	}
	if err == nil {
		_, err = f.WriteAt(b, at)
	}
	if err == nil {
		err = f.Sync()
	}
	return err
}

// DropLog lets a strict file open without its log, if that is missing: what was only there is lost.
func DropLog(path string) error {
	if _, err := os.Stat(path + LogEnd); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, marked, err := stateOf(path); err != nil || !marked {
		return err
	}
	return setMark(path, false)
}

// beginLog begins the log of the file at path under another name, so that a log is always
// whole. Its pages are written once, so that flushing them later writes nothing else.
func beginLog(path string, size int) (*wal, error) {
	b := make([]byte, size)
	copy(b, logMagic)
	b[logLength-1] = logVersion
	binary.LittleEndian.PutUint64(b[logLength:], uint64(size))
	_, _ = rand.Read(b[logSalt:logHead]) // never fails
	binary.LittleEndian.PutUint32(b[logHead:], sumOf(nil, b[:logHead]))
	fresh := path + LogEnd + ".new"
	f, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err = f.WriteAt(b, 0); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(fresh, path+LogEnd)
	}
	if err == nil {
		err = SyncDir(path)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(fresh))
	}
	return openLog(path)
}

// openLog opens the log of the file at path; nil: it has none.
func openLog(path string) (*wal, error) {
	f, err := os.OpenFile(path+LogEnd, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	head := make([]byte, logHead+4)
	info, err := f.Stat()
	if err == nil {
		_, err = f.ReadAt(head, 0)
	}
	size := binary.LittleEndian.Uint64(head[logLength:])
	switch {
	case err != nil && !errors.Is(err, io.EOF):
	case err != nil || string(head[:len(logMagic)]) != logMagic || binary.LittleEndian.Uint32(head[logHead:]) != sumOf(nil, head[:logHead]):
		err = fmt.Errorf("%w: %s does not begin as a log of ramp does", ErrDamaged, path+LogEnd)
	case head[logLength-1] > logVersion:
		err = Newer(uint32(head[logLength-1]), logVersion)
	case size != uint64(info.Size()) || size > mostLog:
		err = fmt.Errorf("%w: %s has %d bytes and should have %d", ErrDamaged, path+LogEnd, info.Size(), size)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &wal{f, info.Size(), head[logSalt:logHead], logPage}, nil
}

// sumOf is CRC-32C.
func sumOf(salt, b []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Update(0, table, salt), table, b)
}

// append makes a frame durable, whose operations begin behind frameHead octets.
func (l *wal) append(s state, frame []byte) error {
	binary.LittleEndian.PutUint32(frame[4:], uint32(len(frame)))
	binary.LittleEndian.PutUint64(frame[frameState:], s.tx)
	binary.LittleEndian.PutUint64(frame[frameState+8:], s.sum)
	binary.LittleEndian.PutUint64(frame[frameAt:], uint64(l.end))
	binary.LittleEndian.PutUint32(frame, sumOf(l.salt, frame[4:]))
	if _, err := l.f.WriteAt(frame, l.end); err != nil {
		return err
	}
	if err := syscall.Fdatasync(int(l.f.Fd())); err != nil {
		return &fs.PathError{Op: "fdatasync", Path: l.f.Name(), Err: err}
	}
	l.end = behind(l.end, len(frame))
	return nil
}

func behind(at int64, size int) int64 { return at + (int64(size)+logPage-1)/logPage*logPage }

// read returns the operations that follow a state of the file, and puts the log's end behind them.
func (l *wal) read(s state) (list [][]byte, err error) {
	b := make([]byte, l.size)
	if _, err := l.f.ReadAt(b, 0); err != nil {
		return nil, err
	}
	if list, l.end, err = frames(b, l.salt, s); err != nil {
		return nil, fmt.Errorf("%s %w", l.f.Name(), err)
	}
	return list, nil
}

// frames are the operations in a log that follow a state, and where they end. Those of an
// earlier state are in the file already. Each frame was flushed before the next was written:
// so one that does not add up was torn by a crash if it is the last, and never acknowledged;
// if a whole one follows it, it is damaged.
func frames(log, salt []byte, s state) (list [][]byte, end int64, err error) {
	end = logPage
	for at := end; at < int64(len(log)); {
		frame, of := frameIn(log, salt, at)
		switch {
		case frame == nil || of.tx < s.tx:
			at += logPage
			continue
		case of != s:
			return nil, end, fmt.Errorf("continues transaction %d of another file: bring that file back, or move the log away", of.tx)
		case at != end:
			return nil, end, fmt.Errorf("is %w at byte %d: transactions follow there at byte %d", ErrDamaged, end, at)
		}
		list = append(list, frame[frameHead:])
		at = behind(at, len(frame))
		end = at
	}
	return list, end, nil
}

// frameIn is the whole frame at a position, or nil, and the state that it follows.
func frameIn(log, salt []byte, at int64) (frame []byte, of state) {
	b := log[at:]
	if len(b) < frameHead {
		return nil, of
	}
	n := binary.LittleEndian.Uint32(b[4:])
	if n < frameHead || uint64(n) > uint64(len(b)) || binary.LittleEndian.Uint64(b[frameAt:]) != uint64(at) ||
		binary.LittleEndian.Uint32(b) != sumOf(salt, b[4:n]) {
		return nil, of
	}
	return b[:n], state{binary.LittleEndian.Uint64(b[frameState:]), binary.LittleEndian.Uint64(b[frameState+8:])}
}
