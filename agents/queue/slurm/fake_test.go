package slurm_test

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/queuetest"
	"ramp/agents/queue/slurm"
)

// The stand-ins for Slurm's commands keep reservations and jobs as files in a
// directory, $S, and really run the jobs. A job without a reservation is a
// placeholder: it begins at the second that its comment tells.
var standIns = map[string]string{
	"scontrol": `
case "$1 $2" in
"create reservation")
	for a; do case $a in
		ReservationName=*) n=${a#*=};; CoreCnt=*) c=${a#*=};; StartTime=*) s=${a#*=};; EndTime=*) e=${a#*=};;
	esac; done
	[ ! -e "$S/resv/$n" ] || { echo "Duplicate reservation name" >&2; exit 1; }
	echo "ReservationName=$n StartTime=$s EndTime=$e Nodes=node1 CoreCnt=$c PartitionName=batch" >"$S/resv/$n"
	echo "Reservation created: $n";;
"-o show")
	if [ -n "$4" ]; then cat "$S/resv/$4" 2>/dev/null || { echo "Reservation $4 not found" >&2; exit 1; }
	else cat "$S"/resv/* 2>/dev/null || echo "No reservations in the system"; fi;;
"delete "*) rm -f "$S/resv/${2#*=}";;
*) echo "Access/permission denied" >&2; exit 1;;
esac`,
	"squeue": `
case "$*" in
"--json --all --states=all") echo '{"meta":{},"errors":[],"jobs":['"$(cat "$S"/jobs/*/json 2>/dev/null | paste -sd,)"']}'; exit;;
*--steps*) exit;;
esac
echo "NAME|COMMENT|JOBID|STATE|START_TIME|END_TIME|EXIT_CODE|TIME|REASON|"
case $3 in --name=*) names=,${3#*=},;; *) echo "squeue: no names" >&2; exit 1;; esac
cat "$S"/jobs/*/record 2>/dev/null | while IFS= read -r line; do
	case $names in *",${line%%|*},"*) printf '%s\n' "$line";; esac
done`,
	"sbatch": `
while :; do case $1 in
	--job-name=*) name=${1#*=};; --comment=*) comment=${1#*=};; --reservation=*) resv=${1#*=};;
	--export=ALL) ;; --export=*) echo "Unable to get user's local environment" >&2; exit 1;; --*) ;; *) break;;
esac; shift; done
[ -z "$resv" ] || [ -e "$S/resv/$resv" ] || { echo "sbatch: error: Batch job submission failed: Requested reservation is invalid" >&2; exit 1; }
id=1
until mkdir "$S/jobs/$id" 2>/dev/null; do id=$((id + 1)); done
echo "$resv" >"$S/jobs/$id/resv"
tell() { # STATE START END WAIT SECONDS
	[ -n "$resv" ] || {
		echo '{"job_id":'$id',"name":"'$name'","comment":"'"$comment"'","partition":"batch","job_state":"'$1'","user_name":"'$(id -un)'","cpus":'${comment##* }',"nodes":"node1","time_limit":60,"submit_time":'$now'}' >"$S/jobs/$id/new"
		mv "$S/jobs/$id/new" "$S/jobs/$id/json"
	}
	echo "$name|$comment|$id|$1|$2|$3|$4|0:$5|${6:-None}|" >"$S/jobs/$id/new" && mv "$S/jobs/$id/new" "$S/jobs/$id/record"
}
now=$(date +%s) wait=0
[ -n "$resv" ] || { begin=${comment#slot }; wait=$((${begin%% *} - now)); }
stamp() { date -u +%FT%T; }
tell PENDING N/A N/A 0 0
(
	[ $wait -le 0 ] || sleep $wait
	[ ! -e "$S/jobs/$id/cancelled" ] || { tell CANCELLED N/A "$(stamp)" 0 0; exit; }
	from=$(date +%s) start=$(stamp)
	SLURM_JOB_ID=$id /bin/sh "$@" </dev/null >/dev/null 2>&1 &
	echo $! >"$S/jobs/$id/pid"
	[ ! -e "$S/jobs/$id/cancelled" ] || kill $!
	tell RUNNING "$start" N/A 0 0
	wait $!; code=$?; state=COMPLETED
	[ $code = 0 ] || state=FAILED
	[ ! -e "$S/jobs/$id/cancelled" ] || state=CANCELLED
	tell $state "$start" "$(stamp)" $((code * 256)) $(($(date +%s) - from))
) </dev/null >/dev/null 2>&1 &
echo $id`,
	"scancel": `
for a; do case $a in
	--reservation=*) resv=${a#*=};;
	--name=*) for j in $(grep -ls "^${a#*=}|" "$S"/jobs/*/record); do
		j=${j%/record}; touch "$j/cancelled"; kill -TERM "$(cat "$j/pid")" 2>/dev/null
	done;;
	[0-9]*) touch "$S/jobs/$a/cancelled"; kill -TERM "$(cat "$S/jobs/$a/pid")" 2>/dev/null;;
esac; done
for j in "$S"/jobs/*; do
	[ -n "$resv" ] && [ "$(cat "$j/resv" 2>/dev/null)" = "$resv" ] || continue
	touch "$j/cancelled"; kill -TERM "$(cat "$j/pid")" 2>/dev/null
done
exit 0`,
}

// fakeSlurm makes the stand-ins of a machine whose state is in a directory, and
// returns theirs.
func fakeSlurm(tb testing.TB, state string) string {
	tb.Helper()
	bin := tb.TempDir()
	for _, d := range []string{"resv", "jobs"} {
		if err := os.MkdirAll(filepath.Join(state, d), 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Cleanup(func() { endJobs(tb, state) })
	for name, lines := range standIns {
		script(tb, bin, name, opened("S='"+state+"'"+lines))
	}
	script(tb, bin, "sinfo", "cat "+data(tb, "sinfo.json"))
	return bin
}

// endJobs ends what still waits or runs. A stand-in that was killed tells no end: that
// is waited for no longer than a minute.
func endJobs(tb testing.TB, state string) {
	tb.Helper()
	dirs, _ := filepath.Glob(filepath.Join(state, "jobs", "*")) // the pattern is a good one
	for _, dir := range dirs {
		for range 1200 { // its pid may be written only now
			record, err := os.ReadFile(filepath.Join(dir, "record"))
			if err != nil || !strings.Contains(string(record), "|PENDING|") && !strings.Contains(string(record), "|RUNNING|") {
				break
			}
			_ = os.WriteFile(filepath.Join(dir, "cancelled"), nil, 0o600)
			if pid, err := os.ReadFile(filepath.Join(dir, "pid")); err == nil {
				_ = exec.Command("kill", "-TERM", strings.TrimSpace(string(pid))).Run()
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func fakeConfig(bin string) slurm.Config {
	return slurm.Config{
		Agent: queuetest.Agent, Partition: "batch", Bin: bin, Poll: 200 * time.Millisecond, PollMost: time.Second,
		Now: time.Now, Slog: slog.New(slog.DiscardHandler),
	}
}

// openFake makes a driver whose Slurm is stood for by the commands in a directory.
func openFake(tb testing.TB, bin string) queue.Driver {
	tb.Helper()
	d, err := slurm.Open(fakeConfig(bin))
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestJobsOfStandIns(t *testing.T) {
	queuetest.RunJobs(t, func(tb testing.TB, dir string) queue.Driver {
		return openFake(tb, fakeSlurm(tb, dir))
	}, queuetest.Apart, queuetest.PlainSignals)
}

func TestJobsOfStandInsInPlaceholders(t *testing.T) {
	queuetest.RunJobs(t, func(tb testing.TB, dir string) queue.Driver {
		cfg := fakeConfig(fakeSlurm(tb, dir))
		cfg.Hold, cfg.Jobs = slurm.HoldJob, filepath.Join(dir, "files")
		d, err := slurm.Open(cfg)
		if err != nil {
			tb.Fatal(err)
		}
		return d
	}, queuetest.Apart, queuetest.PlainSignals)
}

// change makes one of the stand-ins do something else; its own words are $REAL.
func change(tb testing.TB, bin, program, line string) {
	tb.Helper()
	old := filepath.Join(bin, "real-"+program)
	if err := os.Rename(filepath.Join(bin, program), old); err != nil {
		tb.Fatal(err)
	}
	script(tb, bin, program, strings.ReplaceAll(line, "$REAL", "'"+old+"'"))
}

func runProgram(path string) error { return exec.Command(path).Run() }
