#!/usr/bin/env bash
# Compiles the programs for the platforms that they are released for, and puts into
# dist/ an archive of each, a bill of materials of each program, the checksums of these and of
# the sandbox's archive if it is there, and what the changelog says of the version. The same
# commit and the same Go make the same bytes.
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
read -ra programs <<< "${PROGRAMS:-program persia}"

dist=${DIST:-dist}
mkdir -p "$dist"
rm -rf "$dist"/persia_* "$dist"/SHA256SUMS

# A release needs a section of its own; a trial takes what is not yet released.
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
go -C scripts/sbom build -trimpath -buildvcs=false -o "$tools/" github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
for platform in "${platforms[@]}"; do
  export GOOS=${platform%/*} GOARCH=${platform#*/} CGO_ENABLED=0
  name=persia_${version#v}_${GOOS}_${GOARCH}
  mkdir -p "$dist/$name/bin"
  cp LICENSE stack.schema.json scripts/archive/README.persia.md "$dist/$name/"
  # A folder of its own keeps the sample from replacing a stack file of the same name.
  mkdir "$dist/$name/sample"
  cp Pulumi.dev.yaml "$dist/$name/sample/"
  # Pulumi runs the released program as it is.
  sed 's/buildTarget:/binary:/' Pulumi.yaml > "$dist/$name/Pulumi.yaml"
  for program in "${programs[@]}"; do
    package=./cmd/$program
    if [ "$program" = program ]; then
      package=.
    fi
    # The binary records neither the folder nor the state of the clone: the attestation
    # names the commit.
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$dist/$name/bin/$program$(go env GOEXE)" "$package"
  done
  # The archive has the commit's time and no owner, so that every machine makes the same.
  tar --sort=name --mtime="@$stamp" --owner=0 --group=0 --numeric-owner --mode='u+rw,go+r,go-w' \
    -C "$dist" -cf - "$name" | gzip -n > "$dist/$name.tar.gz"
  for program in "$dist/$name"/bin/*; do
    bill=${name}_$(basename "$program" .exe).cdx.json
    # The generator writes the current time. The commit's keeps the bill reproducible.
    "$tools/cyclonedx-gomod" bin -json -noserial -std -version "$version" "$program" |
      sed -E "s/^( *\"timestamp\": )\".*\"/\\1\"$(date -u -d "@$stamp" +%Y-%m-%dT%H:%M:%SZ)\"/" > "$dist/$bill"
  done
  rm -r "${dist:?}/$name"
  echo "$dist/$name.tar.gz"
done
(cd "$dist" && sha256sum -- *.tar.gz *.cdx.json > SHA256SUMS)
