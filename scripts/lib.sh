# Functions for the scripts in this folder, which source this file: messages, packages, building.

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=/usr/bin/python3
jobs=$(nproc 2>/dev/null || echo 2)

say() { printf '== %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
usage_error() { printf '%s: %s (try --help)\n' "${0##*/}" "$*" >&2; exit 2; }

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

# Installs the packages of the given groups that are missing.
install_packages() {
    local missing root=() quiet=(-q -y --no-install-recommends)
    command -v dpkg-query >/dev/null ||
        die "this is not a Debian system: install the packages in scripts/packages.txt by hand, then use --no-install"
    mapfile -t missing < <(missing_packages "$@")
    [[ ${#missing[@]} -gt 0 ]] || return 0
    say "installing with apt-get: ${missing[*]}"
    if [[ $EUID -ne 0 ]]; then
        command -v sudo >/dev/null ||
            die "installing packages requires root, and sudo is missing; run as root: apt-get install ${missing[*]}"
        root=(sudo)
    fi
    apt() { "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "$@" </dev/null; }
    if ! apt-get install --simulate "${quiet[@]}" "${missing[@]}" >/dev/null 2>&1; then
        say 'updating the package lists (apt-get update)'
        apt update -q >/dev/null || say 'apt-get update failed; using the existing lists'
        apt install "${quiet[@]}" "${missing[@]}" >/dev/null || die 'installing the packages failed'
    elif ! apt install "${quiet[@]}" "${missing[@]}" >/dev/null; then
        say 'retrying with new package lists (apt-get update)'
        apt update -q >/dev/null || die 'apt-get update failed'
        apt install "${quiet[@]}" "${missing[@]}" >/dev/null || die 'installing the packages failed'
    fi
}

# check_launch LAUNCHER [argument...]: ends the script if a launcher of topo/ refuses the arguments. Call it
# before installing or building anything for the launcher.
check_launch() {
    local launcher=$1
    shift
    [[ ! -x $python ]] || "$python" "$checkout/topo/$launcher" --check-options "$@" || exit
}

# build FOLDER TARGET[,TARGET...] [cmake option...]: configures and compiles. Shows the output only on failure.
build() {
    local folder=$1 targets=$2 log generator=()
    shift 2
    mkdir -p "$folder"
    log=$folder/build.log
    [[ -e $folder/CMakeCache.txt ]] || generator=(-G Ninja)
    say "building in ${folder#"$checkout"/}/"
    # shellcheck disable=SC2086 (one word for each target)
    if ! { cmake -S "$checkout" -B "$folder" "${generator[@]}" "$@" &&
        cmake --build "$folder" --parallel "$jobs" --target ${targets//,/ }; } >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        die "the build failed; its full output is in $log"
    fi
}
