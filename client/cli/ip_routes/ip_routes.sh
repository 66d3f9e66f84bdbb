# The common part of all route scripts. 'torusctl ip-routes' prints it after the part of the host (see
# route_script.c), which sets host, address, device, protocol, state, interfaces, lowered and spread (the setting that
# makes connections take different next hops of a route, or nothing), and defines nodes() and routes().
sys=/proc/sys/net/ipv4
saved=$state/torus-routes-$host

fail() { echo "$host.sh: $*" >&2; exit 1; }

# Checks whether the routes can be set and, if they have been, whether they are all there. Changes nothing.
check() {
    check_host
    [ ! -e "$saved" ] || { check_routes && check_settings; }
}

# Checks whether the settings are still those of apply().
check_settings() {
    [ "$(cat $sys/ip_forward)" = 1 ] || fail "this host forwards no packets (net.ipv4.ip_forward):" \
        "sh $host.sh up"
    for name in $spread; do
        [ "$(cat "$sys/$name")" = 1 ] || fail "net.ipv4.$name must be 1: sh $host.sh up"
    done
    for i in all $interfaces; do
        for name in $lowered; do
            [ "$(cat "$sys/conf/$i/$name")" = 0 ] || fail "net.ipv4.conf.$i.$name must be 0:" \
                "sh $host.sh up"
        done
    done
}

check_routes() {
    ip link show dev $device >/dev/null 2>&1 || fail "the interface $device is missing: sh $host.sh up"
    missing=$({ ip -4 route show table main proto $protocol; echo; routes; } | awk '
        function hop(i) { return to " " $(i + 1) " " $(i + 3) " " ($(i + 4) == "weight" ? $(i + 5) : 1) }
        NF == 0 { rest = 1; next }
        !rest && $1 != "nexthop" { to = $1 }
        !rest && / (dead|linkdown)( |$)/ { next }
        rest { to = $3; sub("/32", "", to) }
        { for (i = 1; i < NF; i++)
              if ($i == "via" && !rest) found[hop(i)]
              else if ($i == "via" && !(hop(i) in found) && !(to in told)) { told[to]; print to } }')
    [ -z "$missing" ] || fail "routes are missing, or lead to a cable that is down, for" \
        $missing "('sh $host.sh up' sets them again)"
}

# Checks whether the routes can be set.
check_host() {
    [ "$(id -u)" = 0 ] || fail "run it as root: sudo sh $host.sh $action"
    command -v ip >/dev/null || fail "ip is missing (Debian: apt-get install iproute2)"
    here=${TORUS_HOST:-$(uname -n)}
    [ "${here%%.*}" = "${host%%.*}" ] || fail "this machine is $here, the script is for" \
        "$host; if that is the same: TORUS_HOST=$host sh $host.sh $action"
    for i in $interfaces; do
        case $(ip -o link show dev "$i" 2>/dev/null) in
        *[\<,]UP[,\>]*) ;;
        '') fail "there is no interface $i ('ip -br link' lists them); correct the file of" \
            "--hosts, and write the scripts again" ;;
        *) fail "the interface $i is down: ip link set $i up" ;;
        esac
    done
    [ -e "$saved" ] || ! ip link show dev $device >/dev/null 2>&1 ||
        fail "an interface $device exists already; if it is left over: ip link del $device"
    check_addresses
}

# Checks that no address of a node is in use on this host, or in a network that it reaches by another route.
check_addresses() {
    found=$({ nodes; echo; ip -4 -o addr show; } | awk -v device=$device '
        NF == 1 { node[$1]; next }
        NF { sub("/.*", "", $4); if ($2 != device && $4 in node) print $4, "of", $2 }')
    [ -z "$found" ] || fail "addresses of nodes are in use on this host: $found; choose others" \
        "with --address, and write the scripts again"
    found=$(nodes | sed 's/.*/route show to match &/' | ip -4 -batch - |
        awk -v ours=" proto $protocol " '
            index($0, ours) == 0 && $1 != "nexthop" && $1 != "default" && $1 !~ "/1$" { print; exit }')
    [ -z "$found" ] || fail "this host has a route to addresses of nodes: '$found'; choose" \
        "others with --address, and write the scripts again"
}

# Prints the settings that may change, as lines FILE VALUE. ip_forward comes first, because setting it sets others.
settings() {
    cd "$sys" || return 1
    set -- ip_forward conf/all/accept_redirects $spread
    for name in forwarding $lowered; do
        set -- "$@" conf/*/"$name"
    done
    grep -H . "$@" | sed 's/:\([^:]*\)$/ \1/'
}

# Applies settings from lines FILE VALUE.
put() {
    while read -r file value; do
        echo "$value" >"$sys/$file" || exit 1
    done
}

# The kernel uses the larger of the setting of an interface and the setting of "all". Prints the lines that set the
# lowered settings to 0 for the cables, and leave the effective settings of all other interfaces unchanged.
lower() {
    awk -v cables=" all $interfaces " -v lowered=" $lowered " '
        { split($1, part, "/"); cable = index(cables, " " part[2] " ") }
        !index(lowered, " " part[3] " ") { next }
        NR == FNR { if (part[2] == "all") all[part[3]] = $2; next }
        cable && $2 > 0 { last = last $1 " 0\n" }
        !cable && $2 < all[part[3]] { print $1, all[part[3]] }
        END { printf "%s", last }' "$saved" "$saved"
}

# Adds an interface without a cable, for the address. Not every kernel has dummy devices.
add_device() {
    ip link add $device type dummy 2>/dev/null || {
        ip link add $device type veth peer name $device-peer && ip link set $device-peer up
    } || return 1
    ip addr add $address/32 dev $device && ip link set $device up
}

apply() {
    add_device && echo 'ip_forward 1' | put && lower | put &&
        for name in $spread; do echo "$name 1"; done | put && routes | ip -4 -batch -
}

# Prints the saved lines of settings that have changed.
different() {
    (settings) | awk 'NR == FNR { now[$1] = $2; next } $1 in now && now[$1] != $2' - "$saved"
}

undo() {
    ip -4 route flush table main proto $protocol
    ! ip link show dev $device >/dev/null 2>&1 || ip link del $device
    nodes | sed 's/.*/neigh flush to &/' | ip -4 -batch - >/dev/null # entries of former gateways
    # If ip_forward has changed, it is the first line, and must be set before the others.
    different | head -n 1 | put && different | put
    rm -f "$saved"
}

up() {
    check_host
    [ -d "$state" ] && [ -w "$state" ] || fail "cannot write to the folder $state (--state)"
    trap '' HUP INT PIPE TERM # the ssh connection of this script may use the routes
    [ ! -e "$saved" ] || undo
    umask 077
    (settings) >"$saved" && apply && return
    [ ! -e "$saved" ] || undo
    fail "the routes could not be set; everything is as it was before"
}

down() {
    [ "$(id -u)" = 0 ] || fail "run it as root: sudo sh $host.sh down"
    [ -e "$saved" ] || { echo "$host.sh: nothing to undo" >&2; return; }
    trap '' HUP INT PIPE TERM
    undo
}

action=${1-}
case $action in
check | up | down) $action ;;
*) fail "give an action: sh $host.sh check | up | down" ;;
esac
