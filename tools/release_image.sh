#!/usr/bin/env bash
# release_image.sh NAME VERSION: pushes the image of both architectures, made by the Dockerfile around the executables in
# build/release. Its second stage only copies, so that no other machine has to be imitated. Prints name and digest to
# GITHUB_OUTPUT. Needs docker, logged in, and Deno.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=$1
version=$2

parts=()
for architecture in amd64 arm64; do
  deno task release image "$architecture"
  part=$name:$version-$architecture
  docker buildx build --platform "linux/$architecture" --build-context "build=build/image-$architecture" \
    --provenance=false --label "org.opencontainers.image.version=$version" --tag "$part" --push .
  parts+=("$part")
done
docker buildx imagetools create --tag "$name:$version" "${parts[@]}"
digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$name:$version")
[[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || { echo "the registry tells no digest of $name:$version" >&2; exit 1; }
printf 'name=%s\ndigest=%s\n' "$name" "$digest" >>"$GITHUB_OUTPUT"
