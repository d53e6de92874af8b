# SECONDS INDEXES PROGRAM [ARGUMENT...]: runs the program for each index, one after the
# other, in a directory named after the index that has links to the inputs.
limit=$1 indexes=$2 worst=0
shift 2

# put WORD: the word with the index in place of each {}
put() {
	rest=$1 word=
	while :; do
		case $rest in
		*'{}'*) word=$word${rest%%'{}'*}$i rest=${rest#*'{}'} ;;
		*) break ;;
		esac
	done
	word=$word$rest
}

# links DIR: links to the inputs; directories of indexes have only digits
links() {
	for f in * .[!.]*; do
		case $f in
		*[!0-9]*) [ ! -e "$f" ] || ln -s "../$f" "$1/$f" ;;
		esac
	done
}

for i in $indexes; do
	mkdir "$i" && links "$i" || exit 125
	(
		n=$#
		for w; do
			put "$w"
			set -- "$@" "$word"
		done
		shift "$n"
		cd "$i" || exit 125
		export RAMP_ARRAY_INDEX="$i" SLURM_ARRAY_TASK_ID="$i"
		exec timeout -k 1 "$limit" "$@"
	) >"$i/log" 2>&1
	code=$?
	find "$i" -maxdepth 1 -type l -exec rm -f {} +
	echo "$code" >"$i/exit"
	echo "index $i: exited with $code" >&2
	[ "$worst" != 0 ] || worst=$code
done
exit "$worst"
