#!/usr/bin/env bash
# Installs the Deno of releases, whose hash is in .github/deno/package-lock.json, and puts it first in the PATH of the
# steps that follow.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.github/deno"
npm ci --ignore-scripts --no-audit --no-fund
folder=$PWD/node_modules/@deno/linux-x64-glibc
"$folder/deno" --version
echo "$folder" >>"$GITHUB_PATH"
