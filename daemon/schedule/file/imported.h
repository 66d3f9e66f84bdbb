/* A schedule that was read from a file, as an algorithm.
 *
 * A file has one JSON object in each line, first the header, then a route for each source,
 * destination and segment, in any order:
 *
 *     {"schedule":1,"dims":"3x5","name":"mine","segments":2}
 *     {"src":0,"dst":6,"segment":0,"legs":[[0,0,1,1],[1,1,1,1]]}
 *     {"src":0,"dst":6,"segment":1,"legs":[[0,1,1,1],[1,0,1,1]]}
 *
 * A leg is [step, dimension, direction, hops]: see algorithm.h. The header says
 *
 *     schedule   the version of this format: 1
 *     dims       the torus that it is for; without any other key the rest is as below
 *     name       up to 20 letters, digits, '-', '_' or '.' ("imported")
 *     operation  "exchange" or "allgather" ("exchange")
 *     ports      "all-port", "one-port", or "one-port, single hops": then no leg has more than one
 *                hop, and the lower bound is that for such schedules ("all-port")
 *     mode       how it is run unless the client says: "stepped" or "streaming" ("stepped")
 *     segments   how many equal parts a block is split into, 1 to 256 (1)
 *     period     [p0,p1,...]: moving a source and its destination by p_i along dimension i moves the
 *                route with them, so that there are only the routes of the sources in the first
 *                p0 x p1 x ... box (no period: all sources)
 *
 * In a route, a missing segment is 0. Strings have no escapes, numbers no fractions or exponents;
 * unknown or repeated keys are errors, empty lines and blanks at both ends of a line are ignored. The
 * text is UTF-8, with or without a byte order mark; lines may end with CR LF. */
#ifndef TORUSD_SCHEDULE_FILE_IMPORTED_H
#define TORUSD_SCHEDULE_FILE_IMPORTED_H

#include "daemon/schedule/routes/verify.h"

#define IMPORTED_VERSION 1
#define IMPORTED_BYTES_MOST (16u << 20)
#define IMPORTED_ROUTES_MOST (1u << 20)
#define IMPORTED_SEGMENTS_MOST 256u
#define IMPORTED_STEP_MOST 65535u
#define IMPORTED_NAME_SIZE 21u /* bytes for the name in the header, with its end */

struct imported;

/* Reads a file and proves that its schedule is right: every segment of every block arrives
 * exactly once, over legs that exist, in rising steps; in an allgather the routes of a source
 * form a tree; with one port, no node starts or ends two messages in a step. The schedule must
 * be for the torus `only`, unless that is NULL. Returns 0 with *out, which the caller gives to
 * imported_free(), and with *report unless `report` is NULL; or -1 with *e: no memory, or
 * ERROR_REFUSED, which names the line and, where they are known, the pair, the step and the
 * node. */
int imported_read(struct imported **out, const char *text, size_t length, const struct torus *only,
                  struct schedule_report *report, struct error *e);
/* Adds a user, who calls imported_free() as well; the last call frees the schedule. Not
 * thread-safe. */
void imported_keep(const struct imported *s);
void imported_free(const struct imported *s); /* Ends one use; NULL does nothing */

/* The algorithm, valid as long as *s. Its name has the name in the header and the first digits
 * of the digest: "mine@1f4a09c2". */
const struct algorithm *imported_algorithm(const struct imported *s);
const struct torus *imported_torus(const struct imported *s);
const char *imported_name(const struct imported *s);   /* in the header */
const char *imported_digest(const struct imported *s); /* SHA-256 of the file, in hexadecimal */
size_t imported_bytes(const struct imported *s);       /* memory that *s takes, about */

#endif
