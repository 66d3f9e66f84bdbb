#!/bin/sh
# check_exports.sh LIBRARY MAP SONAME HEADER...
# Checks that the headers declare, the version script lists, and the library exports the same functions under one
# version, and that the library's name is SONAME.
set -eu
library=$1 map=$2 soname=$3
shift 3
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

cat "$@" | tr '\n' ' ' | grep -o 'TORUS_EXPORT [^;(]*(' | grep -o 'torus_[a-z_]*($' | tr -d '(' |
    sort >"$work/header"
sed -n '/global:/,/local:/s/^ *\([a-z_]*\);/\1/p' "$map" | sort >"$work/map"
version=$(sed -n 's/^\(LIBTORUS_[0-9]*\) {$/\1/p' "$map")
nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sort >"$work/library"
sed "s/\$/@@$version/" "$work/map" >"$work/versioned"

test -s "$work/header"
diff "$work/header" "$work/map"
diff "$work/versioned" "$work/library"
readelf -d "$library" | grep -F "[$soname]"
