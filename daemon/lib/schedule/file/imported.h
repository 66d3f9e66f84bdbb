/* A schedule that was read from a file, as an algorithm.
 *
 * A file has one JSON object in each line, first the header, then a route for each source,
 * destination and segment, in any order:
 *
 *     {"schedule":1,"dims":"3x5","name":"mine","segments":2}
 *     {"src":0,"dst":6,"segment":0,"legs":[[0,0,1,1],[1,1,1,1]]}
 *     {"src":0,"dst":6,"segment":1,"legs":[[0,1,1,1],[1,0,1,1]]}
 *
 * A leg is [step, dimension, direction, hops]: see algorithm.h. The keys of the header, and their
 * defaults:
 *
 *     schedule   the version of this format: 1 (required)
 *     dims       the torus of the schedule (required)
 *     name       up to 20 letters, digits, '-', '_' or '.' ("imported")
 *     operation  "exchange" or "allgather" ("exchange")
 *     ports      "all-port", "one-port", or "one-port, single hops": then no leg has more than one
 *                hop, and the lower bound is that for such schedules ("all-port")
 *     mode       how it runs unless the client says: "stepped" or "streaming" ("stepped")
 *     segments   how many equal parts a block is split into, 1 to 256 (1)
 *     period     [p0,p1,...]: moving a source and its destination by p_i along dimension i moves
 *                the route with them. The file then has the routes of the sources in the first
 *                p0 x p1 x ... box only (no period: all sources)
 *
 * A route without a segment is for segment 0. Strings have no escapes, numbers no fractions or
 * exponents. Unknown or repeated keys are errors; empty lines, and blanks at both ends of a line,
 * are ignored. The text is UTF-8, with or without a byte order mark; lines may end with CR LF. */
#pragma once

#include "daemon/lib/schedule/verify.h"

#define IMPORTED_VERSION 1
#define IMPORTED_BYTES_MOST (16u << 20)
#define IMPORTED_ROUTES_MOST (1u << 20)
#define IMPORTED_SEGMENTS_MOST 256u
#define IMPORTED_STEP_MOST 65535u
#define IMPORTED_NAME_SIZE 21u /* bytes for the name in the header, with its end */

struct imported;

/* Reads the text of a file and proves that its schedule is right: every segment of every block
 * arrives exactly once, over legs that exist, in rising steps; in an allgather the routes of a
 * source form a tree; with one port, no node starts or ends two messages in a step. The schedule
 * must be for the torus `only`, unless that is NULL. No file that the header names is opened. Returns 0 with *out, which the caller gives to
 * imported_free(), and with *report unless `report` is NULL. Returns -1 with *e otherwise: no
 * memory, or ERROR_REFUSED, whose text names the line and, if they are known, the pair, the step
 * and the node. `text` is not needed afterwards. */
int imported_read(struct imported **out, const char *text, size_t length, const struct torus *only,
                  struct schedule_report *report, struct error *e);
/* Adds a user, who calls imported_free() as well; the last call frees the schedule. Not
 * thread-safe. */
void imported_keep(const struct imported *s);
void imported_free(const struct imported *s); /* ends one use; NULL does nothing */

/* The algorithm, valid as long as *s. Its name is the name in the header and the first digits of
 * the digest: "mine@1f4a09c2". */
const struct algorithm *imported_algorithm(const struct imported *s);
const struct torus *imported_torus(const struct imported *s);
const char *imported_name(const struct imported *s);   /* the name in the header */
const char *imported_digest(const struct imported *s); /* SHA-256 of the file, in hexadecimal */
size_t imported_bytes(const struct imported *s);       /* memory that *s takes, roughly */
