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

# Shows on the terminal, every half second, WHAT, the seconds, and the newest line of the file LOG.
show_progress() {
    local line width begin=$SECONDS
    while sleep 0.5 && kill -0 $$ 2>/dev/null; do
        width=$(tput cols 2>/dev/null) || width=80
        line=$(tail -c 4096 "$2" | tr '\r' '\n' | tr -cd '\n[:print:]' | grep -v '^ *$' | tail -n 1) || line=
        line="$1: $((SECONDS - begin)) s  $line"
        printf '\r\033[K%s' "${line:0:width-1}" >&2
    done
}

# with_progress WHAT LOG COMMAND...: runs a command with its output in the file LOG, and shows its progress if standard
# error is a terminal. Returns the exit status of the command.
with_progress() {
    local what=$1 log=$2 watcher='' status=0
    shift 2
    : >"$log"
    if [[ -t 2 ]]; then
        show_progress "$what" "$log" &
        watcher=$!
    fi
    "$@" >>"$log" 2>&1 </dev/null || status=$?
    if [[ -n $watcher ]]; then
        kill "$watcher" 2>/dev/null || true
        wait "$watcher" 2>/dev/null || true
        printf '\r\033[K' >&2
    fi
    return "$status"
}

# Runs apt-get as root. While another program has the lock of dpkg or of the package lists, as just after the boot, it
# waits for up to ten minutes, and says for whom.
run_apt() {
    local log=$1 what=$2 root=() begin=$SECONDS holder said=''
    shift 2
    [[ $EUID -eq 0 ]] || root=(sudo)
    until with_progress "$what" "$log" "${root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get "$@"; do
        holder=$(sed -n 's/^E: Could not get lock [^ ]* It is held by \(process .*\)$/\1/p' "$log" | head -n 1)
        grep -q '^E: Could not get lock ' "$log" && ((SECONDS - begin < 600)) || return 1
        [[ -n $said ]] || say "waiting until ${holder:-another program} no longer uses apt or dpkg"
        said=yes
        sleep 1
    done
}

# Installs the packages of the given groups that are missing.
install_packages() {
    local missing log options=(-q -y --no-install-recommends)
    command -v dpkg-query >/dev/null ||
        die "this is not a Debian system: install the packages in scripts/packages.txt by hand, then use --no-install"
    mapfile -t missing < <(missing_packages "$@")
    [[ ${#missing[@]} -gt 0 ]] || return 0
    say "installing with apt-get: ${missing[*]}"
    [[ $EUID -eq 0 ]] || command -v sudo >/dev/null ||
        die "installing packages requires root, and sudo is missing; run as root: apt-get install ${missing[*]}"
    [[ $EUID -eq 0 ]] || sudo -v || die 'installing packages requires the right to use sudo'
    log=$(mktemp)
    if ! apt-get install --simulate "${options[@]}" "${missing[@]}" >/dev/null 2>&1 ||
        ! run_apt "$log" installing install "${options[@]}" "${missing[@]}"; then
        say 'updating the package lists (apt-get update)'
        run_apt "$log" updating update -q || say 'apt-get update failed; using the existing lists'
        run_apt "$log" installing install "${options[@]}" "${missing[@]}" || {
            tail -n 20 "$log" >&2
            rm -f "$log"
            die 'installing the packages failed'
        }
    fi
    rm -f "$log"
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
    compile() {
        # shellcheck disable=SC2086 (one word for each target)
        cmake -S "$checkout" -B "$folder" "${generator[@]}" "$@" &&
            cmake --build "$folder" --parallel "$jobs" --target ${targets//,/ }
    }
    if ! with_progress building "$log" compile "$@"; then
        tail -n 60 "$log" >&2
        die "the build failed; its full output is in $log"
    fi
}
