#!/bin/sh
# Holds a slot, and runs in it what the agent orders: SPOOL END, END in milliseconds.
# The file SPOOL/orders only grows. Its line "run NAME DIR" has the words of SPOOL/NAME run,
# one job after the other; "kill NAME DIR" ends that job. Both stay as they are for
# NFS: a file that is opened anew is seen as it is.
# No word of a buyer is read by a shell: xargs passes them on as arguments.
unset TZ LC_ALL SLURM_TIME_FORMAT # the agent's
spool=$1 end=$2
over='' pid='' dir='' killed='' seen=0
trap 'over=1' TERM

now() { date +%s%3N; }
rest() { sleep "$1" & wait $!; }
running() { [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; }

take() {
	n=0
	while IFS=' ' read -r verb name where; do
		n=$((n + 1))
		[ "$n" -gt "$seen" ] || continue
		case $verb in
		run)
			! running || return
			begin "$name" "$where"
			;;
		kill) [ "$where" != "$dir" ] || killed=1 ;;
		esac
		seen=$n
	done <"$spool/orders"
}

begin() {
	[ -z "$pid" ] || finish
	dir=$2 killed='' since=$(now)
	xargs -0 -x -n 100000 -s 500000 -a "$spool/$1" \
		/bin/sh -c 'echo $$ >"$0/run/pid"; exec env "$@"' </dev/null >/dev/null 2>&1 &
	pid=$!
}

# A kill comes again until it is heard. That of a job that has not begun is the
# agent's: it makes the link before the job does.
stop() {
	read -r p <"$dir/run/pid" || return
	case $p in
	*[!0-9]* | 0* | '') ;;
	*) kill -TERM "$p" ;;
	esac
}

# What a job has started on other nodes goes with it; and if its script was killed, it
# ended as that did.
finish() {
	pid=''
	for step in $(squeue --all --noheader --steps --jobs="$SLURM_JOB_ID" --format=%i); do
		case $step in
		*.batch | *.extern) ;;
		*) scancel --quiet "$step" ;;
		esac
	done
	case $(readlink "$dir/run/began") in
	"$SLURM_JOB_ID"#*) ;;
	*) return ;;
	esac
	[ ! -e "$dir/run/exit" ] || return
	for p in $(grep -lszxF -e "RAMP_JOB=$dir" /proc/[0-9]*/environ); do
		p=${p#/proc/}
		kill -KILL "${p%/environ}"
	done
	{ echo "137 0 $since $(now)"; times; } >"$dir/run/exit.new" && mv "$dir/run/exit.new" "$dir/run/exit"
}

tries=0
until [ -r "$spool/orders" ]; do # the nodes' files may come late
	tries=$((tries + 1))
	[ "$tries" -lt 60 ] && [ -z "$over" ] || exit 125
	rest 1
done
while
	left=$((end - $(now)))
	[ -z "$over" ] && [ "$left" -gt 0 ]
do
	take
	running && [ -n "$killed" ] && stop
	[ -z "$pid" ] || running || finish
	[ "$left" -lt 1000 ] || left=1000
	rest "$((left / 1000)).$(printf %03d $((left % 1000)))"
done 2>/dev/null
[ -z "$over" ] || ! running || stop
while running; do # at its slot's end it ends by itself
	rest 0.1
done
[ -z "$pid" ] || finish 2>/dev/null
exit 0
