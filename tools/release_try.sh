#!/usr/bin/env bash
# release_try.sh FOLDER TARGET: checks the sum of the archive for the target, unpacks it elsewhere and starts what is in it.
set -euo pipefail
release=$(cd "$1" && pwd)
target=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cd "$release"
archives=(sluice-*-"$target".tar.gz)
[[ ${#archives[@]} -eq 1 && -f ${archives[0]} ]] || { echo "there is not one archive for $target" >&2; exit 1; }
# macOS has no sha256sum, and shasum is everywhere.
grep -F "  ${archives[0]}" SHA256SUMS | shasum -a 256 --check

cd "$folder"
tar -xzf "$release/${archives[0]}" --strip-components=1
version=${archives[0]#sluice-}
version=${version%-"$target".tar.gz}
said=$(./sluice version | tr -d '\r')
[[ $said == "sluice $version" ]] || { echo "it says \"$said\", not \"sluice $version\"" >&2; exit 1; }
./sluice check
[[ -s NOTICE && -s LICENSE ]]
