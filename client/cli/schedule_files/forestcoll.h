/* Allgathers in the XML of ForestColl (its function spanning_trees_to_xml()): spanning trees of every
 * node, which together have `nchunkspernode` chunks for each root.
 *
 *     <Algo nchunkspernode="2">
 *       <tree root="0" index="0" nchunks="2" height="2">
 *         <send src="0" dst="1" path="0,1"/>
 *         <send src="1" dst="2" path="1,(-1, 'IB', 0),2"/>
 *       </tree>
 *       ...
 *     </Algo>
 *
 * A chunk is a segment; the trees of a root take its segments in the order of the file. The step of a send is its depth
 * in the tree. */
#pragma once

#include <stddef.h>

#include "daemon/lib/schedule/torus.h"

/* Converts XML to torusd's format (imported.h), without verifying the schedule. The roots are the nodes: by number, if
 * all roots are numbers, else in the order in which they first appear. What a path has between the ends of a send are
 * switches; the send goes straight from one end to the other (straight_leg.h).
 *
 * Returns 0 with *routes, which the caller frees, or -1 with NULL and *e: ERROR_MEMORY, or ERROR_REFUSED, whose text
 * names the line. Takes time and memory linear in the length of the XML and of the routes. */
int forestcoll_read(const char *xml, size_t length, const struct torus *t, char **routes,
                    size_t *routes_length, struct error *e);
