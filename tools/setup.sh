#!/bin/sh
# Installs what the repository needs, and nothing twice. POSIX sh, because it runs before there is anything else.
#
#   tools/setup.sh node               node_modules, from package-lock.json
#   tools/setup.sh packages           the Debian packages of lab/packages.txt; fails where one is missing and cannot be had
#   tools/setup.sh packages-if-root   the same, but only says what is missing (then only kwok clusters can be had)
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "setup: $*"
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

# step "what" command...: says what is done, and how long it took.
step() {
  what=$1
  shift
  say "==> $what"
  began=$(date +%s)
  "$@" >&2 || return 1
  say "    $what: $(($(date +%s) - began)) s"
}

node=node_modules/.bin/node
stamp=node_modules/.tributary-setup

# node_modules is up to date when it was installed from the very lock file that lies here, and its node runs.
fingerprint() { cat package.json package-lock.json | sha256sum | cut -d' ' -f1; }
node_is_current() {
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint)" ] && "$node" --version >/dev/null 2>&1
}

setup_node() {
  node_is_current && return 0
  has npm || fail 'npm is missing: install Node.js 18 or newer with npm 9 or newer (apt-get install npm, or https://nodejs.org)'
  step 'installing node_modules' npm ci --no-audit --no-fund --loglevel=error ||
    fail 'npm ci failed: see above; it needs the npm registry'
  # npm's node package brings Node.js itself by an install script, which some set-ups do not run.
  "$node" --version >/dev/null 2>&1 || npm rebuild node --ignore-scripts=false --loglevel=error >&2 || true
  "$node" --version >/dev/null 2>&1 ||
    fail "$node does not run: npm must be allowed to run the install script of the package 'node' (npm rebuild node)"
  fingerprint >"$stamp"
}

is_there() { # is_there PACKAGE PROOF
  case $2 in
    -) ! has dpkg-query || dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed' ;;
    /*) [ -e "$2" ] ;;
    *) has "$2" ;;
  esac
}

missing_packages() {
  sed 's/#.*//' lab/packages.txt | while read -r package proof; do
    [ -z "$package" ] || is_there "$package" "$proof" || printf '%s ' "$package"
  done
}

setup_packages() { # setup_packages [optional]
  PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
  missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  command="apt-get install --no-install-recommends $missing"
  if [ "$(id -u)" -eq 0 ] && has apt-get; then
    export DEBIAN_FRONTEND=noninteractive
    step 'updating the list of packages' apt-get -qq update || say 'setup: apt-get update failed; trying with the old list'
    # shellcheck disable=SC2086 # one word for each package
    if step "installing $missing" apt-get -qq -y install --no-install-recommends $missing; then return 0; fi
    problem="the packages could not be installed: $command"
  elif has apt-get; then
    problem="packages are missing and only root can install them: sudo $command"
  else
    problem="programs are missing; Debian's names of their packages: $missing"
  fi
  [ "${1:-}" = optional ] || fail "$problem"
  say "setup: $problem"
}

case ${1:-} in
  node) setup_node ;;
  packages) setup_packages ;;
  packages-if-root) setup_packages optional ;;
  *) fail 'usage: tools/setup.sh node|packages|packages-if-root' ;;
esac
