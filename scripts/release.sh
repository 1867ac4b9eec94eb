#!/usr/bin/env bash
# Compiles the programs for the platforms that they are released for, and puts into
# dist/ an archive of each with its bill of materials, their checksums, and what the
# changelog says of the version. The same commit and the same Go make the same bytes.
#
#   scripts/release.sh v1.2.3
#
# PLATFORMS and PROGRAMS name fewer of them, and DIST another folder.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?the version is missing: write one like v1.2.3}
if [[ ! $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
  echo "$version is no version: write one like v1.2.3" >&2
  exit 1
fi
read -ra platforms <<< "${PLATFORMS:-linux/amd64 linux/arm64 darwin/arm64 windows/amd64}"
read -ra programs <<< "${PROGRAMS:-persia preview-comment}"

dist=${DIST:-dist}
mkdir -p "$dist"
rm -rf "$dist"/persia_* "$dist"/SHA256SUMS

# Of a release there is a section of its own; a trial has what is not yet released.
section() {
  awk -v heading="## [$1]" 'index($0, heading) == 1 { on = 1; next } /^## / { on = 0 } on' CHANGELOG.md
}
section "${version#v}" > "$dist/NOTES.md"
if [ ! -s "$dist/NOTES.md" ]; then
  if [ "${GITHUB_REF_TYPE:-}" = tag ]; then
    echo "CHANGELOG.md has no section ## [${version#v}]: write what the version brings" >&2
    exit 1
  fi
  section Unreleased > "$dist/NOTES.md"
fi

stamp=$(git log -1 --format=%ct)
tools=$(mktemp -d)
trap 'rm -r "$tools"' EXIT
go build -o "$tools/sbom" ./internal/sbom/cmd
for platform in "${platforms[@]}"; do
  export GOOS=${platform%/*} GOARCH=${platform#*/} CGO_ENABLED=0
  name=persia_${version#v}_${GOOS}_${GOARCH}
  mkdir -p "$dist/$name/bin"
  cp LICENSE "$dist/$name/"
  # Pulumi runs the released program as it is.
  sed 's/buildTarget:/binary:/' Pulumi.yaml > "$dist/$name/Pulumi.yaml"
  for program in "${programs[@]}"; do
    package=./cmd/$program
    if [ "$program" = persia ]; then
      package=.
    fi
    # Neither the folder that it was compiled in nor the state of the clone is part of
    # it: the attestation says which commit it is of.
    go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$dist/$name/bin/" "$package"
  done
  # Nothing of the machine: the time is the commit's, and nobody owns the files.
  tar --sort=name --mtime="@$stamp" --owner=0 --group=0 --numeric-owner --mode='u+rw,go+r,go-w' \
    -C "$dist" -cf - "$name" | gzip -n > "$dist/$name.tar.gz"
  "$tools/sbom" persia "${version#v}" "$stamp" "$dist/$name"/bin/* > "$dist/$name.cdx.json"
  rm -r "${dist:?}/$name"
  echo "$dist/$name.tar.gz"
done
(cd "$dist" && sha256sum -- persia_* > SHA256SUMS)
