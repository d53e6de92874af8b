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
	d.known["s0"] = peer{body: d.known["s0"].body} // left; nobody looks before the first can lapse
	if meet("next", time.Minute) {
		t.Error("the directory was searched again at once")
	}
	now = now.Add(time.Minute)
	if !meet("late", time.Minute) {
		t.Error("no room, though sellers are gone")
	}
	if n := len(d.known); n >= maxSellers {
		t.Errorf("%d are remembered", n)
	}
}
