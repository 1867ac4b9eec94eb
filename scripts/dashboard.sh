#!/usr/bin/env bash
# Draws the dashboard with the metrics of a real training, docs/guides/dashboard.png and dashboard-dark.png.
# The training is examples/Pulumi.train.yaml on a real node, longer than with `make train`. Prometheus answers
# the panels' queries; uPlot, the library of Grafana's panels, draws them, without Grafana. It needs what
# `make train` needs, kubectl, and on Debian and Ubuntu: apt-get install npm chromium prometheus.
set -euo pipefail
cd "$(dirname "$0")/.."

for program in npm chromium prometheus nsenter kubectl; do
	command -v "$program" > /dev/null || {
		echo "dashboard.sh: there is no $program; on Debian and Ubuntu: apt-get install npm chromium prometheus util-linux kubernetes-client" >&2
		exit 1
	}
done
PUPPETEER_SKIP_DOWNLOAD=1 npm --prefix scripts/pictures ci --silent --no-audit --no-fund

stack=.sandbox/dashboard
work=$(mktemp -d)
started=()
stop() {
	# Some have ended already.
	[[ ${#started[@]} -eq 0 ]] || kill "${started[@]}" 2> /dev/null || true
	wait
	.sandbox/bin/sandbox down --stack dashboard --stacks "$work" > "$work/down.log" 2>&1 || cat "$work/down.log" >&2
	rm -rf "$work" .sandbox/storage/node/checkpoints/{,.persia/}clicks/dashboard
}
trap stop EXIT

# 3,000 batches in place of 600, in a run of its own.
sed 's|^      mounts:|      runId: dashboard\n      env: [{name: CLICKS_BATCHES, value: "3000"}]\n&|' \
	examples/Pulumi.train.yaml > "$work/Pulumi.dashboard.yaml"
.sandbox/bin/sandbox train --stack dashboard --stacks "$work" > "$work/train.log" 2>&1 &
training=$!
started+=("$training")

# The pods have addresses and names only in the node's network, where Services have none.
address() {
	kubectl --kubeconfig "$stack/cluster/kubeconfig" --namespace persia get pods \
		--selector app.kubernetes.io/name=metrics-gateway --output 'jsonpath={.items[*].status.podIP}' 2> /dev/null
}
until gateway=$(address) && [[ $gateway ]]; do
	kill -0 "$training" 2> /dev/null || { cat "$work/train.log" >&2; exit 1; }
	sleep 1
done
pid=$(cat "$stack"/node/*/pid)
echo "nameserver 169.254.20.10" > "$work/resolv.conf"
in_node() {
	exec nsenter --net --target "$pid" unshare --mount \
		sh -c 'mount --bind "$0" /etc/resolv.conf && exec "$@"' "$work/resolv.conf" "$@"
}
sed "s/GATEWAY/$gateway/" scripts/dashboard/prometheus.yml > "$work/prometheus.yml"
in_node prometheus --config.file "$work/prometheus.yml" --storage.tsdb.path "$work/metrics" \
	> "$work/prometheus.log" 2>&1 &
metrics=$!
in_node node scripts/dashboard/varz.mjs &
started+=("$metrics" "$!")

wait "$training" || { cat "$work/train.log" >&2; exit 1; }
tail -n 3 "$work/train.log"
# The replicas push their last values, and Prometheus reads them.
sleep 30
kill -0 "$metrics" || { cat "$work/prometheus.log" >&2; exit 1; }
(in_node env CHROMIUM="$(command -v chromium)" node scripts/dashboard/draw.mjs docs/guides)
