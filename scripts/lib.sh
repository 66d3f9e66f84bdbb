# For the scripts beside it: messages, packages, building. Sourced by bash; cd's nowhere.

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=/usr/bin/python3
jobs=$(nproc 2>/dev/null || echo 2)

say() { printf '== %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
usage_error() { printf '%s: %s (--help tells more)\n' "${0##*/}" "$*" >&2; exit 2; }

# Prints which packages of the given groups are not installed.
missing_packages() {
    local group package installed
    installed=" $(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 2>/dev/null |
        awk '$1 == "ii" { print $2 }' | tr '\n' ' ') "
    while read -r group package; do
        if [[ " $* " == *" $group "* && $installed != *" $package "* ]]; then
            echo "$package"
        fi
    done < <(grep -v '^#' "$checkout/scripts/packages.txt")
}

# Installs what the given groups need, if anything is missing.
install_packages() {
    local missing root=() quiet=(-q -y --no-install-recommends)
    command -v dpkg-query >/dev/null ||
        die "this is no Debian system: install by hand what scripts/packages.txt lists, then use --no-install"
    mapfile -t missing < <(missing_packages "$@")
    [[ ${#missing[@]} -gt 0 ]] || return 0
    say "installing with apt-get: ${missing[*]}"
    if [[ $EUID -ne 0 ]]; then
        command -v sudo >/dev/null ||
            die "installing needs root, and there is no sudo; as root: apt-get install ${missing[*]}"
        root=(sudo)
    fi
    apt() { "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "$@" </dev/null; }
    if ! apt-get install --simulate "${quiet[@]}" "${missing[@]}" >/dev/null 2>&1; then
        say 'fetching the lists of packages (apt-get update)'
        apt update -q >/dev/null || say 'apt-get update failed; going on with the lists there are'
        apt install "${quiet[@]}" "${missing[@]}" >/dev/null || die 'installing failed'
    elif ! apt install "${quiet[@]}" "${missing[@]}" >/dev/null; then
        say 'trying again with new lists of packages (apt-get update)'
        apt update -q >/dev/null || die 'apt-get update failed'
        apt install "${quiet[@]}" "${missing[@]}" >/dev/null || die 'installing failed'
    fi
}

# build FOLDER [cmake option...]: configures and compiles; what the tools say is shown if they fail.
build() {
    local folder=$1 log generator=()
    shift
    mkdir -p "$folder"
    log=$folder/build.log
    [[ -e $folder/CMakeCache.txt ]] || generator=(-G Ninja)
    say "building in ${folder#"$checkout"/}/"
    if ! { cmake -S "$checkout" -B "$folder" "${generator[@]}" "$@" &&
        cmake --build "$folder" --parallel "$jobs"; } >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        die "building failed; all of it is in $log"
    fi
}
