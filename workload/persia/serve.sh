#!/bin/sh
# Runs a job's metrics gateway, on the port PERSIA_GATEWAY_PORT, for as long as the script in the
# first argument runs, which waits for the end of the job. Then the gateway stays until the last
# values of the replicas can have been scraped, and this script ends with the other one's status.
set -u
: "${PERSIA_GATEWAY_PORT:?}"

serve() {
	trap '[ -z "${!-}" ] || kill "$!" 2>/dev/null; exit' TERM
	while :; do
		pushgateway --log.level=error --web.listen-address=":$PERSIA_GATEWAY_PORT" &
		wait "$!"
		echo "the metrics gateway ended with status $?: it starts again"
		sleep "${PERSIA_GATEWAY_RESTART_SECONDS:-1}"
	done
}

# A shell handles a signal only between commands, and at once while it waits for one
# in the background.
gateway= waiter= status=
# nn-worker 0 has left after the script has ended, so nothing could ask it again.
trap 'kill $gateway $waiter 2>/dev/null; exit ${status:-143}' TERM INT
serve &
gateway=$!
/bin/sh -c "$1" &
waiter=$!
wait "$waiter"
status=$?
sleep "${PERSIA_LAST_SCRAPE_SECONDS:-45}" &
waiter=$!
wait "$waiter"
kill "$gateway" 2>/dev/null
exit "$status"
