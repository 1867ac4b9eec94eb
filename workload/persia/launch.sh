#!/bin/bash
# Runs a replica of a PERSIA job: launch.sh COMMAND [ARGUMENT...]
#
# A StatefulSet starts its containers again whatever they ended with. A command
# that ended with success is remembered in the file PERSIA_FINISHED_FILE, and is not
# run a second time: the replica idles instead, and tells the Pushgateway at
# PERSIA_METRICS_GATEWAY_ADDR, if there is one, by the path PERSIA_FINISHED_METRIC.
# A command that failed is what the container ends with, so that Kubernetes shows it
# and starts it again.
set -u

stopped= # whether the pod has been told to end
groups=  # the process groups that were started
untold=  # those of them that have not been told to end

log() { echo "launch.sh: $*" >&2; }

# stop passes on that the pod is to end, to whole groups: a launcher may die at once
# without a word to the training that it has started.
stop() {
	local group
	stopped=yes
	for group in $untold; do
		kill -s TERM -- "-$group" 2>/dev/null
	done
	untold=
}
trap stop TERM INT

# run runs a command in a process group of its own, and returns its status. bash
# handles a signal only between commands, so the command is in the background, and a
# wait that a signal has ended is taken up again.
run() {
	local child
	# Only with job control does a command get a group. Off again, a command that
	# is stopped for a moment, by a debugger say, is still waited for.
	set -m
	"$@" </dev/null &
	set +m
	child=$!
	groups+=" $child" untold+=" $child"
	# The signal may have come before the group was known.
	[[ -z $stopped ]] || stop
	while kill -s 0 "$child" 2>/dev/null; do
		wait "$child"
	done
	wait "$child"
}

# await_groups waits for what the commands have left behind, which ends with the
# container's first process. What runs gets all of the pod's time to end.
await_groups() {
	local group
	for group in $groups; do
		while kill -s 0 -- "-$group" 2>/dev/null; do
			sleep 0.1
		done
	done
}

# idle stays until the pod is told to end.
idle() {
	if [[ -n ${PERSIA_METRICS_GATEWAY_ADDR:-} && -n ${PERSIA_FINISHED_METRIC:-} ]]; then
		run keep_reporting
	else
		run sleep infinity
	fi
	await_groups
	exit 0
}

# keep_reporting reports again and again, since the gateway keeps nothing over its
# own restart. The next report ends one that still hangs.
keep_reporting() {
	local attempt failed=
	while :; do
		report &
		attempt=$!
		sleep "${PERSIA_REPORT_SECONDS:-60}"
		kill "$attempt" 2>/dev/null
		wait "$attempt" 2>/dev/null && continue
		[[ -n $failed ]] || log "finished, but the metrics gateway at $PERSIA_METRICS_GATEWAY_ADDR cannot be told: trying on"
		failed=yes
	done
}

# report speaks HTTP by itself: not every image has curl.
report() {
	local host=${PERSIA_METRICS_GATEWAY_ADDR%:*} port=${PERSIA_METRICS_GATEWAY_ADDR##*:} status
	local body=$'# TYPE persia_replica_finished gauge\npersia_replica_finished 1\n'
	{
		printf '%s\r\n' "PUT $PERSIA_FINISHED_METRIC HTTP/1.1" "Host: $PERSIA_METRICS_GATEWAY_ADDR" \
			'Content-Type: text/plain; version=0.0.4' "Content-Length: ${#body}" 'Connection: close' '' >&3 &&
			printf '%s' "$body" >&3 &&
			read -r _ status _ <&3
	} 2>/dev/null 3<>"/dev/tcp/$host/$port" && [[ $status == 2* ]]
}

# remember writes the file as a whole or not at all. What it holds is for people.
remember() {
	mkdir -p "$(dirname "$PERSIA_FINISHED_FILE")" &&
		date -u +%FT%TZ >"$PERSIA_FINISHED_FILE.new" &&
		mv "$PERSIA_FINISHED_FILE.new" "$PERSIA_FINISHED_FILE"
}

if [[ $# -eq 0 ]]; then
	log "usage: launch.sh COMMAND [ARGUMENT...]"
	exit 2
fi
: "${PERSIA_FINISHED_FILE:?says where it is remembered that the command has finished}"

if [[ -e $PERSIA_FINISHED_FILE ]]; then
	log "finished at $(cat "$PERSIA_FINISHED_FILE"), says $PERSIA_FINISHED_FILE: idling"
	idle
fi

run "$@"
status=$?
if [[ -n $stopped ]]; then
	await_groups
	log "stopped; the command ended with status $status"
	exit "$status"
fi
if [[ $status -ne 0 ]]; then
	log "the command failed with status $status"
	exit "$status"
fi
remember || log "cannot write $PERSIA_FINISHED_FILE: in another pod the command would run again"
log "finished: idling"
idle
