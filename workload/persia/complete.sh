#!/bin/sh
# Ends with success once all trainers of a job have finished.
#
# It asks the Pushgateway at PERSIA_METRICS_GATEWAY_ADDR which replicas of the run
# PERSIA_RUN of the job PERSIA_JOB have reported so, and of how many.
set -u
: "${PERSIA_METRICS_GATEWAY_ADDR:?}" "${PERSIA_JOB:?}" "${PERSIA_RUN:?}"

metrics() {
	timeout 10 wget -q -O - "http://$PERSIA_METRICS_GATEWAY_ADDR/metrics" 2>/dev/null
}

# finished counts, in metrics, the trainers that have finished, and says of how many.
# A job that has been given more or fewer trainers has reports of both numbers.
finished() {
	awk -v job="$PERSIA_JOB" -v run="$PERSIA_RUN" '
		function label(name) {
			if (!match($0, "[{,]" name "=\"[^\"]*\"")) return ""
			return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
		}
		/^persia_replica_finished\{.*\} 1$/ && label("job") == job && label("run") == run && label("role") == "nn-worker" {
			replica = label("replica"); of = label("of")
			if (replica + 0 < of + 0 && !seen[of, replica]++) count[of]++
		}
		END {
			best = 0
			for (of in count) if (!best || count[of] / of > count[best] / best) best = of
			print count[best] + 0, best
		}'
}

# watch returns when all have finished, and says so when the number has changed.
watch() {
	last=
	while :; do
		count=0 trainers=0
		if reported=$(metrics); then
			set -- $(printf '%s\n' "$reported" | finished)
			count=$1 trainers=$2
			now="$count of $trainers trainers have finished"
			[ "$count" -gt 0 ] || now="no trainer has finished yet"
		else
			now="the metrics gateway at $PERSIA_METRICS_GATEWAY_ADDR does not answer"
		fi
		[ "$now" = "$last" ] || echo "$now"
		last=$now
		[ "$count" -eq 0 ] || [ "$count" -ne "$trainers" ] || return 0
		sleep "${PERSIA_POLL_SECONDS:-15}"
	done
}

# A shell handles a signal only between commands, and at once while it waits for one
# in the background.
watcher=
trap '[ -z "$watcher" ] || kill "$watcher" 2>/dev/null; exit 143' TERM INT
watch &
watcher=$!
wait "$watcher"
