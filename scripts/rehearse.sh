#!/usr/bin/env bash
# Rehearses what the working tree changes in a stack since a commit, in the sandbox. Further arguments are for
# `sandbox rehearse`. It exits with 0 if all happens as announced, 1 if not or if the rehearsal itself fails, and 2 if there is
# nothing to rehearse.
#
#   STACK=prod BASE=origin/main STACKS=. PROGRAM=same scripts/rehearse.sh SANDBOX [ARGUMENT…]
set -euo pipefail
sandbox=$1
shift
if ! commit=$(git rev-parse --verify --quiet --short "$BASE^{commit}"); then
	echo "there is no commit $BASE: write BASE=COMMIT" >&2
	exit 2
fi
case $STACKS in /* | *..*)
	echo "STACKS=$STACKS: write a folder of the repository, relative to its root" >&2
	exit 2
	;;
esac
if [ ! -e "$STACKS/Pulumi.$STACK.yaml" ]; then
	if git cat-file -e "$commit:./$STACKS/Pulumi.$STACK.yaml" 2> /dev/null; then
		echo "$STACKS/Pulumi.$STACK.yaml is gone since $BASE: destroy the stack before its file goes" >&2
	else
		echo "there is no stack $STACK: write STACK=NAME for one of" "$STACKS"/Pulumi.*.yaml >&2
	fi
	exit 2
fi
base=$(mktemp -d)
trap 'rm -rf "$base"' EXIT
git archive "$commit" | tar -x -C "$base"
arguments=(--base "$BASE ($commit)" --stack "$STACK" --stacks "$STACKS")
if [ ! -e "$base/$STACKS/Pulumi.$STACK.yaml" ]; then
	arguments=(--base "nothing, as $BASE ($commit) does not have it" --stack "$STACK" --stacks "$STACKS")
else
	arguments+=(--base-stacks "$base/$STACKS")
	# What is not part of the program.
	others=(':!.github' ':!docs' ':!sandbox' ':!scripts' ':!tests' ':!examples' ':!*_test.go' ':!*.md' ':!Makefile' ':!Pulumi.*.yaml')
	if [ "${PROGRAM:-}" != same ] && [ -n "$(git diff --name-only "$commit" -- . "${others[@]}"
		git ls-files --others --exclude-standard -- . "${others[@]}")" ]; then
		if [ ! -e "$base/scripts/compile-sandbox.sh" ]; then
			echo "$BASE has no sandbox that this one can run: write PROGRAM=same, or a newer BASE" >&2
			exit 2
		fi
		echo "the program differs: compiling that of $BASE" >&2
		# What it has in common with this one need not be compiled again.
		mkdir "$base/.sandbox"
		cp -al "$(dirname "$sandbox")" "$base/.sandbox/bin" 2> /dev/null || cp -a "$(dirname "$sandbox")" "$base/.sandbox/"
		rm -f "$base/.sandbox/bin/sandbox" "$base/.sandbox/bin/.sandbox.made"
		(cd "$base" && scripts/compile-sandbox.sh .sandbox/bin/sandbox >&2)
		arguments+=(--base-project "$base" --base-sandbox "$base/.sandbox/bin/sandbox")
	fi
fi
"$sandbox" rehearse "${arguments[@]}" "$@"
