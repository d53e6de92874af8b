package acl

// ParseAll reads one or more messages in string form and passes them to take in order.
// It skips white space and comments between them. A comment goes from ';' to the end
// of its line; 'ramp user trace' writes the sending times as comments. Dates without Z
// are UTC. Each message has at most MaxText bytes; the caller bounds b. ParseAll stops
// at the first fault, a *SyntaxError with the offset in b, or at an error of take.
func ParseAll(b []byte, take func(Message) error) error {
	p := parser{src: b}
	p.comments()
	for {
		start := p.pos
		m, err := p.message()
		if err != nil {
			return err
		}
		if p.pos-start > MaxText {
			return p.fail(start, "a message of %d bytes, want at most %d", p.pos-start, MaxText)
		}
		if err := take(m); err != nil {
			return err
		}
		if p.comments(); p.pos == len(p.src) {
			return nil
		}
	}
}

func (p *parser) comments() {
	for p.peek() == ';' {
		for p.pos < len(p.src) && p.src[p.pos] != '\n' {
			p.pos++
		}
	}
}
