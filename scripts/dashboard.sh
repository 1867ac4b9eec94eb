#!/usr/bin/env bash
# Draws the dashboard with the metrics of a real training into docs/guides/dashboard.png. The training is
# examples/Pulumi.train.yaml on a real node, longer than `make train`. The panels' queries go to Prometheus;
# the drawing is by uPlot, the library of Grafana's panels, and not by Grafana. It needs what `make train`
# needs, and on Debian and Ubuntu: apt-get install npm chromium prometheus jq.
set -euo pipefail
cd "$(dirname "$0")/.."

for program in npm chromium prometheus nsenter; do
	command -v "$program" > /dev/null || {
		echo "dashboard.sh: there is no $program; on Debian and Ubuntu: apt-get install npm chromium prometheus util-linux" >&2
		exit 1
	}
done
PUPPETEER_SKIP_DOWNLOAD=1 npm --prefix scripts/pictures ci --silent --no-audit --no-fund

stack=.sandbox/dashboard
work=$(mktemp -d)
started=()
stop() {
	# Those that have ended already need no signal.
	[[ ${#started[@]} -eq 0 ]] || kill "${started[@]}" 2> /dev/null || true
	.sandbox/bin/sandbox down --stack dashboard --stacks "$work" > "$work/down.log" 2>&1 || cat "$work/down.log" >&2
	rm -rf "$work"
}
trap stop EXIT

sed 's|^      mounts:|      env: [{name: CLICKS_BATCHES, value: "3000"}]\n&|' examples/Pulumi.train.yaml > "$work/Pulumi.dashboard.yaml"
.sandbox/bin/sandbox train --stack dashboard --stacks "$work" > "$work/train.log" 2>&1 &
training=$!
started+=("$training")

# The pods' addresses exist only in the machine's network, which has the API server at the address that
# is in the kubeconfig.
until [[ -s $stack/node/pid && -s $stack/cluster/kubeconfig ]]; do
	kill -0 "$training" 2> /dev/null || { cat "$work/train.log" >&2; exit 1; }
	sleep 1
done
in_machine=(nsenter --net --target "$(cat $stack/node/pid)")

sed "s|KUBECONFIG|$PWD/$stack/cluster/kubeconfig|" scripts/dashboard/prometheus.yml > "$work/prometheus.yml"
"${in_machine[@]}" prometheus --config.file "$work/prometheus.yml" --storage.tsdb.path "$work/metrics" \
	--web.listen-address 127.0.0.1:9090 > "$work/prometheus.log" 2>&1 &
started+=("$!")
"${in_machine[@]}" node scripts/dashboard/varz.mjs &
started+=("$!")

wait "$training" || { cat "$work/train.log" >&2; exit 1; }
tail -n 3 "$work/train.log"
# What the replicas say in the end is pushed, and scraped.
sleep 30
"${in_machine[@]}" env CHROMIUM="$(command -v chromium)" node scripts/dashboard/draw.mjs docs/guides/dashboard.png
