package web

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
)

// maxFields bounds the parts of a form with files.
const maxFields = protocol.MaxStaged + 64

// brought reads a form and keeps the files that it brings. The fields come before the files, so
// a form that is wrong is refused before its files are read.
func (s userPages) brought(w http.ResponseWriter, r *http.Request) (form url.Values, inputs []message.RunInput, err error) {
	if r.PostForm != nil {
		return r.PostForm, nil, nil
	}
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, nil, exit.WithCode(exit.Usage, err)
	}
	form = url.Values{}
	room := int64(maxForm) // for all fields
	for range maxFields {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // in-process readers have none
		p, err := parts.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return form, inputs, nil
		case err != nil:
			return nil, nil, tooLong(err)
		case p.FileName() == "":
			b, err := io.ReadAll(io.LimitReader(p, room+1))
			if err != nil {
				return nil, nil, tooLong(err)
			}
			if room -= int64(len(b)); room < 0 {
				return nil, nil, exit.Fail(exit.Usage, "put a long command into a script, and send that as a file", "the fields of the form have more than %d bytes", maxForm)
			}
			form.Set(p.FormName(), string(b))
			continue
		}
		if len(inputs) == 0 {
			if err := s.mayBring(form); err != nil {
				return nil, nil, err
			}
		}
		in, err := s.keep(w, r, form.Get("id"), p)
		if err != nil {
			return nil, nil, err
		}
		inputs = append(inputs, in)
	}
	return nil, nil, exit.Fail(exit.Usage, "pack them into an archive", "more than %d files", protocol.MaxStaged)
}

func tooLong(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return exit.Fail(exit.Usage, "'ramp run' sends larger ones", "the files have more than %d GiB in total", maxUpload>>30)
	}
	return exit.Fail(exit.Usage, "send the form again", "the form did not arrive whole: %w", err)
}

// mayBring refuses files without a request that uses them.
func (s userPages) mayBring(form url.Values) error {
	program, err := programOf(form, nil)
	switch c := s.read(form); {
	case c.err() != nil:
		return c.err()
	case err != nil:
		return err
	case !validID(form.Get("id")):
		return exit.Fail(exit.Usage, "open 'New request' again", "the form has no ID")
	case program == nil:
		return exit.Fail(exit.Usage, "go back and write the command that uses them; nothing was asked", "there are files, but no program")
	}
	return nil
}

// keep hands a file to the agent, piece by piece.
func (s userPages) keep(w http.ResponseWriter, r *http.Request, id string, p *multipart.Part) (in message.RunInput, err error) {
	const piece = 512 << 10
	buffer := make([]byte, piece)
	q := control.UploadCall{ID: id, Path: p.FileName(), Part: secret()}
	for !q.Last {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // as above
		n, err := io.ReadFull(p, buffer)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			q.Last = true
		case err != nil:
			return in, tooLong(err)
		}
		q.Data = buffer[:n]
		ctx, cancel := context.WithTimeout(r.Context(), AnswerTime)
		in, err = ask(ctx, s.Server, control.RunUpload, q)
		cancel()
		if err != nil {
			return in, err
		}
		q.At += int64(n)
	}
	return in, nil
}

// programOf is the program of a form; nil: only time is bought.
func programOf(form url.Values, inputs []message.RunInput) (*message.Program, error) {
	script, app := text(form, "command"), text(form, "app")
	p := &message.Program{App: app, Inputs: inputs, Detached: true}
	for line := range strings.Lines(text(form, "params")) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok && name == "" {
			continue
		} else if !ok || name == "" {
			return nil, exit.Fail(exit.Usage, "go back and mend it; nothing was asked", "parameter %.40q: want NAME=VALUE", line)
		}
		p.Params = append(p.Params, message.Param{Name: name, Value: value})
	}
	switch {
	case app != "" && script != "":
		return nil, exit.Fail(exit.Usage, "go back and leave one of them empty; nothing was asked", "the form has a program and an application")
	case app == "" && len(p.Params) > 0:
		return nil, exit.Fail(exit.Usage, "go back and name the application; nothing was asked", "there are parameters, but no application")
	case app == "" && script == "":
		return nil, nil
	case script != "":
		p.Command = []string{"sh", "-c", script}
	}
	return p, nil
}

// text is a field without the ends of lines that browsers write.
func text(form url.Values, name string) string {
	return strings.TrimSpace(strings.ReplaceAll(form.Get(name), "\r\n", "\n"))
}

// scriptOf is what a person would write for a program.
func scriptOf(p message.Program) string {
	if c := p.Of(0); len(c) == 3 && c[0] == "sh" && c[1] == "-c" {
		return c[2]
	}
	var line []string
	for _, w := range p.Of(0) {
		if strings.HasPrefix(w, "-") { // a flag
			line = append(line, strings.TrimPrefix(words.ShellWord("x"+w), "x"))
			continue
		}
		line = append(line, words.ShellWord(w))
	}
	return strings.Join(line, " ")
}

// liveStreams bounds the programs that are followed at once.
const liveStreams = 32

// runLive sends what a unit prints as events, each a piece of text. A browser that comes again
// gets what it does not have yet.
func (s userPages) runLive(w http.ResponseWriter, r *http.Request) {
	select {
	case s.following <- struct{}{}:
		defer func() { <-s.following }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many programs are followed: close some pages", http.StatusServiceUnavailable)
		return
	}
	unit, err := unitOf(r)
	if err != nil || allowed(control.RunLog.Call) != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	id := r.PathValue("id")
	out := newEventText(w, r.Header.Get("Last-Event-ID"))
	err = control.RunLog.Follow(r.Context(), s.cfg.Client, control.RunCall{ID: id, Unit: unit, Follow: true}, out.send)
	switch {
	case r.Context().Err() != nil || errors.Is(err, control.ErrGone): // the browser comes again
		return
	case errors.Is(err, errEnough):
		out.end(fmt.Sprintf("\n… more than %d KiB; 'ramp logs %s' shows all\n", maxOutput>>10, words.ShellWord(id)))
	case err != nil:
		out.end("\n" + words.Sentence(err.Error()) + "\n")
	default:
		out.end("")
	}
}

// eventText writes what a program prints as events. Their IDs count the bytes of stdout and of
// stderr, since another visit may get the two in another order.
type eventText struct {
	w         http.ResponseWriter
	out, errs printed
}

// printed is one of the two.
type printed struct {
	sent, skip int
	rest       []byte // of a character that is not whole yet
}

// newEventText continues behind the event that a browser had last; what cannot be read is a
// first visit.
func newEventText(w http.ResponseWriter, last string) *eventText {
	e := &eventText{w: w}
	out, errs, _ := strings.Cut(last, "-")
	e.out.skip, _ = strconv.Atoi(out)
	e.errs.skip, _ = strconv.Atoi(errs)
	return e
}

// next returns what is new in a piece, up to its last whole character.
func (p *printed) next(b []byte) []byte {
	b = append(p.rest, b...)
	p.rest = nil
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if at := len(b) - n; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				b, p.rest = b[:at], b[at:len(b):len(b)]
			}
			break
		}
	}
	known := min(len(b), max(0, p.skip-p.sent))
	p.sent += len(b)
	return b[known:]
}

func (e *eventText) send(l control.LogLine) error {
	p := &e.out
	if l.Stream == "stderr" {
		p = &e.errs
	}
	b := p.next(l.Data)
	if len(b) == 0 {
		return nil
	}
	return e.event(string(b))
}

func (e *eventText) event(text string) error {
	text = html.EscapeString(visibleLines(text))
	_ = http.NewResponseController(e.w).SetWriteDeadline(time.Now().Add(writeTime)) // in-process writers have none
	if _, err := fmt.Fprintf(e.w, "id: %d-%d\ndata: %s\n\n", max(e.out.sent, e.out.skip), max(e.errs.sent, e.errs.skip), strings.ReplaceAll(text, "\n", "\ndata: ")); err != nil {
		return err
	}
	if err := http.NewResponseController(e.w).Flush(); err != nil {
		return err
	}
	if e.out.sent+e.errs.sent > maxOutput {
		return errEnough
	}
	return nil
}

// end says that nothing more comes.
func (e *eventText) end(text string) {
	if text = string(e.out.rest) + string(e.errs.rest) + text; text != "" {
		_ = e.event(text) // the next write fails too
	}
	_, _ = io.WriteString(e.w, "event: end\ndata: 1\n\n") // an error means that the browser left
}

// runFile sends an output of a program.
func (s userPages) runFile(w http.ResponseWriter, r *http.Request) {
	q := control.RunFileCall{ID: r.PathValue("id"), Path: r.URL.Query().Get("path")}
	var err error
	if q.Unit, err = unitOf(r); err != nil {
		s.fail(w, r, err)
		return
	}
	begun := false
	err = s.outputOf(r.Context(), q, func(p control.FilePiece) error {
		if !begun {
			begun = true
			attach(w, path.Base(q.Path))
			w.Header().Set("Content-Length", strconv.FormatInt(p.Size, 10))
		}
		return writePiece(w, p.Data)
	})
	s.ended(w, r, begun, err)
}

// runFiles sends all outputs of a unit in an archive.
func (s userPages) runFiles(w http.ResponseWriter, r *http.Request) {
	v, err := ask(r.Context(), s.Server, control.Run, control.RunCall{ID: r.PathValue("id")})
	unit, bad := unitOf(r)
	if err = errors.Join(err, bad); err != nil {
		s.fail(w, r, err)
		return
	}
	begun := false
	z := zip.NewWriter(w)
	for _, u := range v.Units {
		if u.Unit != unit-1 {
			continue
		}
		for _, f := range u.Status.Outputs {
			var to io.Writer
			err = errors.Join(err, s.outputOf(r.Context(), control.RunFileCall{ID: v.ID, Unit: unit, Path: f.Path}, func(p control.FilePiece) (err error) {
				if !begun {
					begun = true
					attach(w, "outputs.zip")
				}
				if to == nil {
					if to, err = z.CreateHeader(&zip.FileHeader{Name: f.Path, Method: zip.Deflate, Modified: s.cfg.Now()}); err != nil {
						return err
					}
				}
				_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // as above
				_, err = to.Write(p.Data)
				return err
			}))
			if err != nil {
				break
			}
		}
	}
	if err == nil && !begun {
		err = exit.Fail(exit.Nothing, "", "unit %d has left no files", unit)
	}
	if err == nil {
		err = z.Close()
	}
	s.ended(w, r, begun, err)
}

func (s userPages) outputOf(ctx context.Context, q control.RunFileCall, f func(control.FilePiece) error) error {
	if err := allowed(control.RunFile.Call); err != nil {
		return err
	}
	return control.RunFile.Follow(ctx, s.cfg.Client, q, f)
}

// attach has a browser save what comes, and never show it.
func attach(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
}

func writePiece(w http.ResponseWriter, b []byte) error {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // in-process writers have none
	_, err := w.Write(b)
	return err
}

// ended reports an error while there is a page for it. Later it breaks the connection off, so
// that the browser does not take a part for the whole.
func (s userPages) ended(w http.ResponseWriter, r *http.Request, begun bool, err error) {
	switch {
	case err == nil:
	case begun:
		panic(http.ErrAbortHandler)
	default:
		s.fail(w, r, err)
	}
}
