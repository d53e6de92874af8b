#!/usr/bin/env -S python3 -IS
# Runs jobs on this machine, and leaves the slots to example.py beside it.
import json, os, signal, subprocess, sys
FILE = "jobs.json"

def slots(text):
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "example.py")
    return subprocess.run([beside], input=text, capture_output=True, text=True, check=True).stdout

def started(pid):  # when, which tells it from a later process of the same number
    state, *rest = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return rest[18] if state not in "ZX" else "over"

def alive(id):
    try:
        return started(jobs[id][0]) == jobs[id][1] != "over"
    except (KeyError, OSError):
        return False

def submit(job):
    found = json.loads(slots(json.dumps({"do": "find", "now": ask["now"], "id": job["reservation"]})))
    if not found["ok"] or alive(job["id"]):
        return {k: found[k] for k in ("ok", "code") if k in found}
    pid = subprocess.Popen(
        job["command"], env=dict(v.split("=", 1) for v in job["env"]), cwd="/", start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid
    jobs[job["id"]] = [pid, started(pid)]
    with open(FILE + ".new", "w") as f:
        json.dump(jobs, f)
    os.replace(FILE + ".new", FILE)
    return {"ok": True}

def stop(id, verb):
    if verb != "kill" or not alive(id):
        return {"ok": False, "code": "unknown" if verb == "kill" else "forbidden", "note": "it can only be killed"}
    os.kill(jobs[id][0], signal.SIGTERM)
    return {"ok": True}

text = sys.stdin.read()
ask = json.loads(text)
jobs = json.load(open(FILE)) if os.path.exists(FILE) else {}
do = ask["do"]
if do not in ("submit", "jobs", "signal"):
    sys.exit(print(slots(text), end=""))
print(json.dumps(
    submit(ask["job"]) if do == "submit" else stop(ask["id"], ask["verb"]) if do == "signal" else
    {"ok": True, "jobs": [{"id": id, "state": "running"} for id in ask["ids"] if alive(id)]}))
