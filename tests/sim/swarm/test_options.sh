#!/bin/bash
# The swarm's options and exit statuses: test_options.sh SWARM
set -eu -o pipefail

swarm=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "test_options.sh: $*" >&2
    exit 1
}

# Runs the swarm. `out` and `err` are its output. Fails unless it ends with this status.
expect() {
    local wanted=$1 status=0
    shift
    "$swarm" "$@" >out 2>err || status=$?
    [[ $status -eq $wanted ]] || fail "status $status, not $wanted: $* $(cat err)"
}

says() {
    grep -qe "$2" "$1" || fail "no $2 in: $(cat "$1")"
}

member() {
    python3 -c 'import json, sys; print(eval("json.load(open(\"out\"))" + sys.argv[1]))' "$1"
}

equal() {
    [[ $1 == "$2" ]] || fail "$1, not $2"
}

expect 0 --help
for option in --seeds --seconds --first --today --jobs --progress --most-violations --json --twice --hashes --shrink \
    --list --trace --dims --rates --without-requests --without-faults --without-groups --without-copies --find; do
    says out "^  $option "
done
expect 2 --nonsense
expect 2 --seeds many
expect 2 --jobs 0
expect 2 --dims 1
expect 2 --without-faults 64
expect 2 --today --first 7
expect 2 --today --shrink 7
expect 2 --progress /nonexistent/file --seeds 1
expect 0 --list
says out '^power '

# The same seed gives the same trace, on any number of processes, in any order.
expect 0 --seeds 6 --first 5 --hashes
sort out >two
expect 0 --seeds 6 --first 5 --hashes --jobs 1
sort out >one
cmp one two || fail 'the traces depend on the number of processes'
equal "$(wc -l <one)" 6

# It resumes where it stopped.
expect 0 --seeds 2 --progress next --json
equal "$(cat next)" 2
equal "$(member '["seeds"]')" 2
expect 0 --seeds 3 --progress next --json
equal "$(member '["seeds"]')" 1
equal "$(cat next)" 3
expect 0 --seeds 3 --progress next --json
equal "$(member '["seeds"]')" 0
equal "$(member '["violated"]')" 0
[[ $(member '["faults"].keys()') == *"'full disk'"* ]] || fail 'no faults in the summary'

# It begins no world when its time is over. The seeds of a day begin with the date.
expect 0 --seconds 1 --jobs 1 --json
[[ $(member '["seeds"]') -ge 1 && $(member '["seconds"] >= 1') == True ]] || fail "it played for too short a time: $(cat out)"
expect 0 --seconds 600 --seeds 2 --json
equal "$(member '["seeds"]')" 2
before=$(date -u +%Y%m%d)
expect 0 --today --seeds 1 --json
first=$(member '["first"]')
[[ $first == "${before}00000" || $first == "$(date -u +%Y%m%d)00000" ]] || fail "the seeds of today begin at $first"
says err "^swarm: the first seed of today is $first\$"

# Links change their rates in worlds of which the seed says otherwise; the printed command says so, too.
expect 0 --first 5 --seeds 6 --json
most=$(member '["faults"]["slow link"]')
expect 0 --first 5 --seeds 6 --rates --json
[[ $(member '["faults"]["slow link"]') -gt $most ]] || fail 'no more slow links with --rates'
expect 1 --first 24 --seeds 1 --rates --find 'is down'
says err '^    scripts/swarm --first 24 --seeds 1 --rates --find '

# A failing world is reported, and made smaller.
expect 1 --first 24 --seeds 500 --find 'is down' --most-violations 1 --jobs 1 --json
seed=$(member '["violations"][0]["seed"]')
equal "$(member '["violations"][0]["invariant"]')" found
says err "^seed $seed: found, at "
says err "^    scripts/swarm --first $seed --seeds 1 --find 'is down' --trace\$"
expect 1 --shrink "$seed" --find 'is down'
says out '^found: .*is down'
command=$(grep '^scripts/swarm ' out)
requests=$(grep -c '^  request' err)
faults=$(grep -c '^  fault' err)
[[ $requests -le 2 && $faults -le 2 ]] || fail "$requests requests and $faults faults are left"
eval "set -- $command"
shift
expect 1 "$@"
says err 'VIOLATED: found'
expect 0 --shrink "$seed"
says out 'does not fail'
