#!/bin/sh
# Ends with success when a job is complete, and with status 3 when it has failed.
#
# It asks the job's coordinator, at PERSIA_COORDINATOR, about the run PERSIA_RUN, and
# tells of each change, and every five minutes, as `persia status` reads the last line.
# Its last words, which Kubernetes keeps, are the last answer.
set -u
: "${PERSIA_COORDINATOR:?}" "${PERSIA_RUN:?}" "${PERSIA_TOKEN:?}"

watch() {
	last= polls=0
	while :; do
		answer="http://$PERSIA_COORDINATOR/answer?run=$PERSIA_RUN"
		now=$(timeout 10 wget -q -O - --header "Authorization: Bearer $PERSIA_TOKEN" "$answer" 2>/dev/null) ||
			now="the coordinator at $PERSIA_COORDINATOR does not answer"
		# What follows changes with the time alone.
		state=${now%%, \"hangs\": *}
		polls=$((polls + 1))
		if [ "$state" != "$last" ] || [ "$polls" -ge 20 ]; then
			printf '%s\n' "$now"
			last=$state polls=0
		fi
		# The coordinators of other releases answer otherwise, until they are replaced.
		case $now in
		'{"version": 1, '*'", "phase": "done", '*) status=0 ;;
		'{"version": 1, '*'", "phase": "failed", '*) status=3 ;;
		*) status= ;;
		esac
		[ -z "$status" ] || break
		sleep "${PERSIA_POLL_SECONDS:-15}"
	done
	printf '%s\n' "$now" >"${PERSIA_LAST_WORDS:-/dev/termination-log}"
	return "$status"
}

# A shell handles a signal only between commands, and at once while it waits for one
# in the background.
watcher=
trap '[ -z "$watcher" ] || kill "$watcher" 2>/dev/null; exit 143' TERM INT
watch &
watcher=$!
wait "$watcher"
