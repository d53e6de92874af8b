// Package invitation is how somebody comes to a market: the file that invites,
// and the one exchange by which its token is turned into a certificate and an
// account.
//
// An invitation is text of some lines. It says by which addresses to join, whose
// certificates to trust, and which banks there are. It proves nothing by itself:
// who takes it trusts whoever handed it over. It may carry the token of a bank
// that enrols newcomers; then it is worth what the token is worth, and is to be
// kept like a key.
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
// Lines that begin with # and empty ones mean nothing. A line that is not known is
// an error, so that a misspelt one is not lost. Everything is bytes in and bytes
// out; nothing here reads a file, a clock or a random source of its own.
package invitation
