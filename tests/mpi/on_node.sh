#!/bin/sh
# on_node.sh PROGRAM...: runs a rank of an MPI program on its node of a loopback torus. $MPI_TEST_RANKS has a line for
# each rank: the socket of its daemon, and its preloads, if any.
line=$(printf '%s\n' "$MPI_TEST_RANKS" | sed -n "$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} + 1))p")
export TORUS_SOCKET="${line%% *}"
preload="${line#* }"
[ -z "$preload" ] || export LD_PRELOAD="$preload${LD_PRELOAD:+:$LD_PRELOAD}"
exec "$@"
