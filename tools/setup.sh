#!/bin/sh
# Installs what the repository needs, and nothing twice. POSIX sh, because it runs before there is anything else.
#
#   tools/setup.sh node               node_modules, from package-lock.json
#   tools/setup.sh packages           the Debian packages of lab/packages.txt; fails where one is missing and cannot be had
#   tools/setup.sh go                 a Go that can build the lab's programs, from Debian or its backports, where there is none
#   tools/setup.sh all                go, and beside each other the sources of the lab's programs, node, and packages
#   tools/setup.sh all-if-root        the same, but only says what is missing (then only kwok clusters can be had, or none)
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
  # Somebody may have run npm ci by hand.
  if "$node" tools/installed.ts >/dev/null 2>&1; then
    fingerprint >"$stamp"
    return 0
  fi
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

# Some packages bring a service. Debian asks this file whether it may start; tests start what they need themselves.
policy=/usr/sbin/policy-rc.d
without_services() {
  if [ -e "$policy" ]; then
    "$@"
    return
  fi
  (
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    "$@"
  )
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
    if step "installing $missing" without_services apt-get -qq -y install --no-install-recommends $missing; then return 0; fi
    problem="the packages could not be installed: $command"
  elif has apt-get; then
    problem="packages are missing and only root can install them: sudo $command"
  else
    problem="programs are missing; Debian's names of their packages: $missing"
  fi
  [ "${1:-}" = optional ] || fail "$problem"
  say "setup: $problem"
}

# Since this minor version of 1.x Go fetches a newer one of itself from the module proxy (lab/go-build.ts asks it to).
least_go=21

go_is_there() {
  for go in go /usr/local/go/bin/go /usr/lib/go-1.*/bin/go; do
    minor=$(cd / && "$go" env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
    [ "${minor:-0}" -lt "$least_go" ] || return 0
  done
  return 1
}

# The newest package golang-1.x-go that apt knows, where it is new enough.
go_package() {
  minor=$(apt-cache pkgnames golang-1. | sed -n 's/^golang-1\.\([0-9]*\)-go$/\1/p' | sort -n | tail -n 1)
  [ "${minor:-0}" -lt "$least_go" ] || printf 'golang-1.%s-go' "$minor"
}

# The backports of the mirrors that this machine has already; its own list of sources stays as it is.
backports=/etc/apt/sources.list.d/tributary-backports.list
add_backports() {
  release=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
  # shellcheck disable=SC2016 # apt's own format
  mirror=$(apt-get indextargets --format '$(SUITE) $(CODENAME) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    sed -n "s/^[^ ]* $release \(.*\)/\1/p" | head -n 1)
  [ -n "$release" ] && [ -n "$mirror" ] || return 1
  trap 'rm -f "$backports"' EXIT
  printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s-backports main\n' "$mirror" "$release" >"$backports"
  apt-get -qq update
}

setup_go() { # setup_go [optional]
  go_is_there && return 0
  hint="install Go 1.$least_go or newer from your distribution or https://go.dev/dl"
  if [ "$(id -u)" -ne 0 ] || ! has apt-get; then
    [ "${1:-}" = optional ] || fail "Go is missing: $hint"
    say "setup: Go is missing, and without the lab's programs no cluster can be had: $hint"
    return 0
  fi
  export DEBIAN_FRONTEND=noninteractive
  step 'updating the list of packages' apt-get -qq update || say 'setup: apt-get update failed; trying with the old list'
  if [ -z "$(go_package)" ]; then step 'looking into the backports' add_backports || true; fi
  package=$(go_package)
  [ -n "$package" ] || fail "Go is missing, and neither Debian nor its backports have a new one: $hint"
  step "installing $package" apt-get -qq -y install --no-install-recommends "$package" || fail "$package cannot be installed: $hint"
  go_is_there || fail "$package is installed, but its go does not run: $hint"
}

# Downloading waits for the network only, so it runs beside the others; what fails here fails again, with a reason, in the build.
fetch_modules() {
  (cd lab/binaries/programs && GOTOOLCHAIN=auto GOWORK=off GOFLAGS=-mod=readonly "$go" list -tags tools -deps ./... >/dev/null 2>&1) || true
}

setup_all() { # setup_all [optional]
  setup_go "$@"
  go_is_there && fetch_modules &
  modules=$!
  setup_node
  setup_packages "$@"
  wait "$modules" || true
}

case ${1:-} in
  all) setup_all ;;
  node) setup_node ;;
  packages) setup_packages ;;
  go) setup_go ;;
  all-if-root) setup_all optional ;;
  *) fail 'usage: tools/setup.sh all|all-if-root|node|packages|go' ;;
esac
