#!/bin/bash
# Runs a replica of a PERSIA job: launch.sh COMMAND [ARGUMENT...]
#
# A StatefulSet starts its containers again whatever they ended with. A command
# that ended with success is remembered in the file PERSIA_FINISHED_FILE, and is not
# run a second time: the replica idles instead. A command that failed is what the
# container ends with, so that Kubernetes shows it and starts it again.
set -u

stopped= # whether the pod has been told to end
child=   # the process that is waited for

log() { echo "launch.sh: $*" >&2; }

# stop passes on that the pod is to end. What runs gets the pod's time to do so.
stop() {
	stopped=yes
	[[ -z $child ]] || kill -TERM "$child" 2>/dev/null
}
trap stop TERM INT

# run runs a command and returns its status. bash handles a signal only between
# commands, so the command is in the background, and a wait that a signal has ended
# is taken up again.
run() {
	local status
	"$@" &
	child=$!
	# The signal may have come before the child was known.
	[[ -z $stopped ]] || kill -TERM "$child" 2>/dev/null
	while :; do
		wait "$child"
		status=$?
		kill -0 "$child" 2>/dev/null || return "$status"
	done
}

idle() {
	run sleep infinity
	exit 0
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
