// Package boltfile opens files of bbolt: for one process at a time, only if they are
// what they should be, and only after they were read without bbolt. bbolt trusts its
// file: a damaged page can make it follow branches for ever, or ask for more memory
// than there is, and neither can be recovered from. So this is looked for first,
// believing nothing that a page says; what else damage does to bbolt, Guard turns
// into an error.
package boltfile
