#!/usr/bin/env -S python3 -IS
# A batch system in 30 lines: 16 cores, and a file in the directory it runs in.
import json, os, sys
CORES, FILE = 16, "slots.json"

def save():
    with open(FILE + ".new", "w") as f:
        json.dump(slots, f)
        f.flush(), os.fsync(f.fileno())
    os.replace(FILE + ".new", FILE)
    return {"ok": True}

def reserve(want):
    near = [s for s in slots.values() if s["start"] < want["end"] and want["start"] < s["end"]]
    times = [want["start"]] + [s["start"] for s in near if s["start"] > want["start"]]
    free = CORES - max(sum(s["cores"] for s in near if s["start"] <= t < s["end"]) for t in times)
    if id not in slots and free < want["cores"]:
        return {"ok": False, "code": "busy", "free": free, "note": f"{free} cores are free"}
    if slots.setdefault(id, want) != want:
        return {"ok": False, "code": "mismatch", "note": "it exists with another slot"}
    return save() | {"slot": want}

ask = json.load(sys.stdin)
do, id = ask["do"], ask.get("id")
slots = json.load(open(FILE)) if os.path.exists(FILE) else {}
slots = {k: s for k, s in slots.items() if s["end"] > ask["now"]}
mine = [{"id": k, "mine": True, "slot": s} for k, s in slots.items()]
if do == "release": slots.pop(id, None)
print(json.dumps(
    reserve(ask["slot"]) if do == "reserve" else save() if do == "release" else
    {"ok": True, "capacity": CORES, "reservations": mine} if do == "state" else
    {"ok": True, "slot": slots[id]} if do == "find" and id in slots else {"ok": False, "code": "unknown"}))
