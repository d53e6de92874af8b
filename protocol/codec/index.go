package codec

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"math"
	"time"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// recordDomain keeps the signature of a record from being that of anything else.
const recordDomain = "ramp-record/1\n"

var indexBodies = []row{
	body(60, func(c *coder, m *message.Records, w *wire.Records) { recordsOf(c, m, w) },
		on(index, protocol.Request, protocol.Inform)),

	body(61, func(c *coder, m *message.IndexQuery, w *wire.IndexQuery) {
		if m.Shard.Terms != (protocol.Terms{}) || w.Shard != nil {
			shardOf(c, &m.Shard, part(&w.Shard))
		}
		c.modes(&m.Modes, &w.Modes)
		c.cores(&m.Cores, &w.Cores)
		c.amount("ceiling", &m.Ceiling, &w.Ceiling)
		number(c, "rows", &m.Want, &w.Want, 0, message.MaxRows)
		same(c, &m.Salt, &w.Salt)
	}, on(index, protocol.QueryRef)),

	body(62, func(c *coder, m *message.IndexRows, w *wire.IndexRows) {
		list(c, "rows", &m.Rows, &w.Rows, message.MaxRows, indexRow)
		list(c, "classes", &m.Census, &w.Census, message.MaxCensus, censusOf)
	}, on(index, protocol.Inform, protocol.Agree)),

	body(63, func(c *coder, m *message.IndexFetch, w *wire.IndexFetch) {
		values(c, "sellers", &m.Sellers, &w.Sellers, message.MaxRecords, fingerprint)
	}, on(index, protocol.QueryRef)),

	body(64, func(c *coder, m *message.IndexDigest, w *wire.IndexDigest) {
		list(c, "shards", &m.Shards, &w.Shards, message.MaxDigest, censusOf)
	}, on(index, protocol.Inform)),
}

func shardOf(c *coder, m *message.Shard, w *wire.Shard) {
	c.term(&m.Terms, part(&w.Terms))
	number(c, "class", &m.Class, &w.Class, 0, message.MaxClass)
	number(c, "bits", &m.Bits, &w.Bits, 0, message.MaxShardBits)
	number(c, "prefix", &m.Prefix, &w.Prefix, 0, 1<<min(max(w.Bits, 0), message.MaxShardBits)-1)
}

func indexRow(c *coder, m *message.IndexRow, w *wire.IndexRow) {
	fingerprint(c, &m.Seller, &w.Seller)
	c.amount("start price", &m.Start, &w.Start)
	c.amount("minimum price", &m.Min, &w.Min)
	c.cores(&m.Cores, &w.Cores)
	number(c, "load", &m.Load, &w.Load, 0, message.MaxLoad)
}

func censusOf(c *coder, m *message.Census, w *wire.Census) {
	shardOf(c, &m.Shard, part(&w.Shard))
	number(c, "count", &m.Count, &w.Count, 0, math.MaxInt32)
}

func fingerprint(c *coder, m, w *string) {
	same(c, m, w)
	if err := protocol.AgentID("a@" + *w).Validate(); err != nil {
		c.malformed("fingerprint: %w", err)
	}
}

// records copies records. A reader leaves out those that do not verify: one that has
// expired in an index must not spoil the others.
func recordsOf(c *coder, m *message.Records, w *wire.Records) {
	if n := max(len(m.List), len(w.Records)); n > message.MaxRecords {
		c.fail(protocol.CodeLimit, "%d records, want at most %d", n, message.MaxRecords)
		return
	}
	for _, r := range m.List {
		if n := len(r.Signed); n == 0 || n > message.MaxRecord {
			c.malformed("record of %d bytes, want 1..%d", n, message.MaxRecord)
		}
		w.Records = append(w.Records, r.Signed)
	}
	if c.writes {
		return
	}
	for _, b := range w.Records {
		if r, err := c.documents.record(b); err == nil {
			m.List = append(m.List, r)
		}
	}
}

func (d documents) record(b []byte) (message.Record, error) {
	if !d.own {
		return OpenRecord(d.opener.Trust, b, d.at)
	}
	r, w, err := readRecord(b)
	if err != nil || len(w.Chain) == 0 {
		return r, err
	}
	leaf, err := x509.ParseCertificate(w.Chain[0])
	if err != nil {
		return r, fmt.Errorf("record: %w", err)
	}
	r.Issuer = IssuerOf([]*x509.Certificate{leaf})
	r.Seller, err = identity.ID(leaf)
	return r, err
}

// SealRecord signs a record with the seller's key. The same arguments give the same bytes.
func SealRecord(c *identity.Credential, r message.Record) (message.Record, error) {
	listing := &wire.Listing{}
	x := coder{writes: true}
	if listingOf(&x, &r, listing); x.err != nil {
		return r, fmt.Errorf("record: %w", x.err)
	}
	b, err := listing.MarshalVTStrict()
	if err != nil {
		return r, fmt.Errorf("record: %w", err)
	}
	sum := sha256.Sum256(append([]byte(recordDomain), b...))
	signature, err := c.Signer().Sign(nil, sum[:], crypto.SHA256)
	if err != nil {
		return r, fmt.Errorf("record: %w", err)
	}
	r.Signed, err = (&wire.Record{Chain: c.ChainDER(), Listing: b, Signature: signature}).MarshalVTStrict()
	if err == nil && len(r.Signed) > message.MaxRecord {
		err = fmt.Errorf("%d bytes, want at most %d: give fewer addresses or a shorter certificate chain", len(r.Signed), message.MaxRecord)
	}
	if err != nil {
		return r, fmt.Errorf("record: %w", err)
	}
	r.Seller, r.Issuer = c.ID, IssuerOf(c.Chain)
	return r, nil
}

// OpenRecord verifies a record as of a time. It does not share memory with b.
func OpenRecord(trust *identity.Trust, b []byte, at time.Time) (message.Record, error) {
	r, w, err := readRecord(b)
	if err != nil {
		return message.Record{}, err
	}
	peer, err := trust.Verify(w.Chain, at)
	if err != nil {
		return message.Record{}, fmt.Errorf("record: %w", err)
	}
	algorithm := x509.SHA256WithRSA
	if _, ok := peer.Chain[0].PublicKey.(*ecdsa.PublicKey); ok {
		algorithm = x509.ECDSAWithSHA256
	}
	if err := peer.Chain[0].CheckSignature(algorithm, append([]byte(recordDomain), w.Listing...), w.Signature); err != nil {
		return message.Record{}, fmt.Errorf("record of %s: %w", peer.ID, err)
	}
	r.Seller, r.Issuer = peer.ID, IssuerOf(peer.Chain)
	return r, nil
}

// ChainOf returns the certificates of a record, leaf first. Nothing is verified.
func ChainOf(record []byte) ([][]byte, error) {
	_, w, err := readRecord(record)
	if err != nil {
		return nil, err
	}
	return w.Chain, nil
}

// readRecord parses a record without verifying it.
func readRecord(b []byte) (message.Record, *wire.Record, error) {
	if len(b) > message.MaxRecord {
		return message.Record{}, nil, fmt.Errorf("record of %d bytes, want at most %d", len(b), message.MaxRecord)
	}
	w, listing := &wire.Record{}, &wire.Listing{}
	if err := w.UnmarshalVT(b); err != nil {
		return message.Record{}, nil, fmt.Errorf("record: %w", err)
	}
	if err := listing.UnmarshalVT(w.Listing); err != nil {
		return message.Record{}, nil, fmt.Errorf("record: %w", err)
	}
	var r message.Record
	var c coder
	if listingOf(&c, &r, listing); c.err != nil {
		return message.Record{}, nil, fmt.Errorf("record: %w", c.err)
	}
	r.Signed = append([]byte(nil), b...)
	return r, w, nil
}

// listing copies the part of a record that its seller signs.
func listingOf(c *coder, m *message.Record, w *wire.Listing) {
	c.needed("issue time", &m.Issued, &w.Issued)
	number(c, "load", &m.Load, &w.Load, 0, message.MaxLoad)
	presenceOf(c, &m.Presence, part(&w.Presence))
	if m.Presence.Agent != protocol.KindResource {
		c.malformed("record of a %s, want a resource", m.Presence.Agent)
	}
}

// IssuerOf names the authority that issued the first certificate of a chain.
func IssuerOf(chain []*x509.Certificate) string {
	if len(chain) == 0 {
		return ""
	}
	return identity.Fingerprint(append([]byte(chain[0].Issuer.String()), chain[0].AuthorityKeyId...))
}
