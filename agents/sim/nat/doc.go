// Package nat has real programs trade across NAT: for every pair of kinds it opens a WAN with
// a bank and a second agent at public addresses, a site and a user behind their routers, and
// types the commands of a newcomer. It measures; it decides nothing about NAT itself.
package nat
