package market

import "ramp/protocol/auction"

// maxDocuments is how many documents a Reader remembers at most.
const maxDocuments = 64

// Reader is auction.Read for the agents of one world, all of whom get the very
// same document in an auction: it is read once. It is for one goroutine.
func Reader() auction.Reader {
	known := map[string]auction.Document{}
	return func(document []byte) (auction.Document, error) {
		if d, ok := known[string(document)]; ok {
			return d, nil
		}
		d, err := auction.Read(document)
		if err != nil {
			return d, err
		}
		if len(known) == maxDocuments {
			clear(known)
		}
		known[string(document)] = d
		return d, nil
	}
}
