package user

import (
	"fmt"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// A full directory takes nobody in until somebody is gone, and looks for that only then.
func TestAFullDirectoryHasRoomWhenSomebodyIsGone(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	d := &directory{known: map[protocol.AgentID]peer{}}
	meet := func(name string, ttl time.Duration) bool {
		p := message.Presence{Agent: protocol.KindResource, TTL: ttl, Counter: 1}
		d.meet(now, protocol.AgentID(name), p, p)
		_, known := d.known[protocol.AgentID(name)]
		return known
	}
	for i := range maxSellers {
		meet(fmt.Sprint("s", i), time.Minute+time.Duration(i%60)*time.Second)
	}
	if meet("early", time.Minute) {
		t.Error("a full directory took a seller in")
	}
	delete(d.known, "s0")
	d.known["gone"] = peer{body: d.known["s1"].body} // nobody looks before the first can lapse
	if meet("next", time.Minute) {
		t.Error("the directory was searched again at once")
	}
	now = now.Add(time.Minute)
	if !meet("late", time.Minute) {
		t.Error("no room, though sellers are gone")
	}
	now = now.Add(time.Hour) // all are gone
	for i := range maxSellers {
		meet(fmt.Sprint("t", i), time.Minute)
	}
	if now = now.Add(time.Minute); !meet("last", time.Minute) {
		t.Error("no room, though all are gone")
	}
}
