package journal

// Lost is how many messages since Open could not be written.
func (j *Journal) Lost() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.trace.lost
}

// Path is where the journal is.
func (j *Journal) Path() string { return j.path }
