#!/bin/sh
# on_node.sh PROGRAM...: runs a rank of an MPI program on the node of a loopback torus that it belongs to.
# $MPI_TEST_RANKS has a line for each rank: the socket of its daemon, and what it preloads, if anything.
line=$(printf '%s\n' "$MPI_TEST_RANKS" | sed -n "$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} + 1))p")
export TORUS_SOCKET="${line%% *}"
preload="${line#* }"
[ -z "$preload" ] || export LD_PRELOAD="$preload${LD_PRELOAD:+:$LD_PRELOAD}"
exec "$@"
