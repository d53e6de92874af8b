// Package invitation brings newcomers to a market: it defines the invitation file, and
// the request that exchanges its token for a certificate and an account.
//
// An invitation is a short text with the addresses to join at, the certificates to trust, and the
// banks of the market. It proves nothing: a newcomer trusts the person that handed it over. It may
// carry the token of a bank that enrols newcomers, and must then be protected like a key.
//
//	ramp invitation 1
//	market: demo
//	bootstrap: /ip4/192.0.2.7/tcp/4101/p2p/Qm…
//	bank: bank@mwq… CPU,GPU
//	enrol: bank@mwq…
//	token: kq3…
//	expires: 2026-12-01T08:00:00Z
//	credit: 100 CPU
//	-----BEGIN CERTIFICATE-----
//	…
//
// Empty lines and lines that begin with # are ignored. An unknown line is an error, so
// that a misspelt one is noticed. Functions take and return bytes; the package never
// reads a file, a clock or a random source of its own.
package invitation
