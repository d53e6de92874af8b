package acl

// Parse reads a message in string form. A date without Z is taken as UTC, since FIPA does
// not define the zone of local time. The error is a *SyntaxError.
func Parse(b []byte) (Message, error) {
	p := parser{src: b}
	if len(b) > MaxText {
		return Message{}, p.fail(0, "a message of %d bytes, want at most %d", len(b), MaxText)
	}
	m, err := p.message()
	if err != nil {
		return Message{}, err
	}
	if p.space(); p.pos < len(p.src) {
		return Message{}, p.fail(p.pos, "found %s after the end of the message", p.found())
	}
	return m, nil
}
