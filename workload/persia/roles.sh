#!/bin/bash
# Starts a role of a release of PERSIA without persia-launcher: roles.sh ROLE
#
# ROLE is trainer, datacompose, middleware or embserver, as those releases call them.
# All that the roles are told is in the environment.
set -eu

refuse() {
	echo "roles.sh: $*" >&2
	exit 2
}

# needs refuses to start without variables that the role is started with.
needs() {
	local name missing=
	for name; do
		[[ -n ${!name:-} ]] || missing+=" $name"
	done
	[[ -z $missing ]] || refuse "$role needs what is not set:$missing"
}

# server starts one of PERSIA's own programs.
server() {
	needs PERSIA_RUNTIME PERSIA_PORT PERSIA_GLOBAL_CONFIG PERSIA_EMBEDDING_CONFIG REPLICA_INDEX REPLICA_SIZE
	exec "$PERSIA_RUNTIME/$1" --port "$PERSIA_PORT" \
		--global-config "$PERSIA_GLOBAL_CONFIG" --embedding-config "$PERSIA_EMBEDDING_CONFIG" \
		--replica-index "$REPLICA_INDEX" --replica-size "$REPLICA_SIZE"
}

[[ $# -eq 1 ]] || refuse "usage: roles.sh trainer|datacompose|middleware|embserver"
role=$1
# The programs write their logs there, and do not make it.
[[ -z ${LOG_DIR:-} ]] || mkdir -p "$LOG_DIR"

case $role in
trainer)
	needs PERSIA_PYTHON PERSIA_NN_WORKER_ENTRY NPROC_PER_NODE REPLICA_SIZE NODE_RANK MASTER_ADDR MASTER_PORT
	exec "$PERSIA_PYTHON" -m torch.distributed.launch \
		--nproc_per_node="$NPROC_PER_NODE" --nnodes="$REPLICA_SIZE" --node_rank="$NODE_RANK" \
		--master_addr="$MASTER_ADDR" --master_port="$MASTER_PORT" "$PERSIA_NN_WORKER_ENTRY"
	;;
datacompose)
	needs PERSIA_PYTHON PERSIA_DATALOADER_ENTRY
	exec "$PERSIA_PYTHON" "$PERSIA_DATALOADER_ENTRY"
	;;
middleware) server persia-middleware-server ;;
embserver) server persia-embedding-server ;;
*) refuse "unknown role $role: want trainer, datacompose, middleware or embserver" ;;
esac
