#!/bin/sh
# Runs one job of an agent: DIR END SIZE MEMORY PROGRAM [ARGUMENT...]
# END in milliseconds, SIZE of a file in blocks of 512 bytes, MEMORY in KiB; 0: no
# limit, also of timeout. Nothing of a job stands in this script: it is the same for all.
umask 077
dir=$1 end=$2 size=$3 memory=$4
shift 4
run=$dir/run
me=${SLURM_JOB_ID:-${PBS_JOBID:-$$-$(date +%s%N)}}#${SLURM_RESTART_COUNT:-0}.$$
pid='' asked=0 plain=''
trap 'asked=1; : >"$run/asked"; [ -z "$pid" ] || kill -TERM "$pid"' TERM

# It begins once, whatever is submitted or queued again: one link, one winner.
ln -sT "$me" "$run/began" 2>/dev/null
if [ "$(readlink "$run/began")" != "$me" ]; then
	[ -L "$run/began" ] && exit 0
	exit 125 # this node does not see the job's directory
fi
cd "$dir/work" || exit 125

now() { date +%s%3N; }
started=$(now)
left=$((end - 1500 - started))
[ "$left" -gt 0 ] || left=1
[ "$end" != 0 ] || left=0
(
	# A shell lets its background ignore these, and timeout does too since coreutils 9.10.
	env --default-signal=INT,QUIT true 2>/dev/null && plain='env --default-signal=INT,QUIT'
	ulimit -c 0
	[ "$size" = 0 ] || ulimit -f "$size"
	[ "$memory" = 0 ] || ulimit -v "$memory"
	export RAMP_JOB="$dir" TMPDIR="$dir/tmp"
	[ ! -e "$run/asked" ] || exit 143 # a signal that comes with the fork may be lost
	exec $plain timeout -k 1 "$((left / 1000)).$(printf %03d $((left % 1000)))" "$@"
) >>"$dir/stdout" 2>>"$dir/stderr" &
pid=$!

# What it has used so far, in hundredths of a second: of what bears its mark, and of
# what that has waited for. First after a second, later every ten.
(
	most=0 rest=1 nap=''
	trap 'kill "$nap"; exit' TERM
	while
		sleep "$rest" &
		nap=$!
		wait "$nap" && kill -0 "$pid"
	do
		sum=0
		for p in $(grep -lszxF -e "RAMP_JOB=$dir" /proc/[0-9]*/environ); do
			read -r line <"${p%environ}stat" || continue
			set -- ${line##*) }
			sum=$((sum + ${12} + ${13} + ${14} + ${15}))
		done
		[ "$sum" -le "$most" ] || most=$sum
		echo "$most" >"$run/used.new" && mv "$run/used.new" "$run/used"
		[ "$rest" -ge 10 ] || rest=$((rest + 1))
	done
) 2>/dev/null &
meter=$!
[ "$asked" = 0 ] || kill -TERM "$pid"
while :; do # a signal ends a wait, and not the program
	wait "$pid"
	code=$?
	kill -0 "$pid" 2>/dev/null || break
done
ended=$(now)
kill "$meter" 2>/dev/null # and no wait: its own work is not the job's

# What it has left running, wherever it went, goes with it.
tries=0
while [ "$tries" -lt 50 ]; do
	left=$(grep -lszxF -e "RAMP_JOB=$dir" /proc/[0-9]*/environ)
	[ -n "$left" ] || break
	for p in $left; do
		p=${p#/proc/}
		kill -KILL "${p%/environ}" 2>/dev/null
	done
	tries=$((tries + 1))
done
{ echo "$code $asked $started $ended"; times; } >"$run/exit.new" && mv "$run/exit.new" "$run/exit"
exit "$code"
