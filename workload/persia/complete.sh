#!/bin/sh
# Ends with success when a job is complete, and with status 3 when it has failed.
#
# It asks the job's coordinator, at PERSIA_COORDINATOR, about the run PERSIA_RUN, and
# tells of each change.
set -u
: "${PERSIA_COORDINATOR:?}" "${PERSIA_RUN:?}" "${PERSIA_TOKEN:?}"

watch() {
	last=
	while :; do
		now=$(timeout 10 wget -q -O - --header "Authorization: Bearer $PERSIA_TOKEN" "http://$PERSIA_COORDINATOR/status?run=$PERSIA_RUN" 2>/dev/null) ||
			now="the coordinator at $PERSIA_COORDINATOR does not answer"
		[ "$now" = "$last" ] || echo "$now"
		last=$now
		case $now in
		complete*) return 0 ;;
		failed*) return 3 ;;
		esac
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
