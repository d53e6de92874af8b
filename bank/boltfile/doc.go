// Package boltfile opens files of bbolt for one process at a time, and only after it has
// checked them without bbolt. bbolt trusts its file: a damaged page can make it follow
// branches without end, or ask for more memory than the machine has, and a program
// cannot recover from either. This package finds such damage first, and trusts no page;
// Guard turns all other failures of bbolt on a damaged file into errors.
package boltfile
