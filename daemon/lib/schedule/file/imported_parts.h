/* Internals of the reader of schedules, for imported*.c only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/lib/schedule/file/imported.h"
#include "proto/error.h"
#include "proto/sha256.h"

/* A strict reader for the part of JSON that imported.h needs: an object in one line, with strings
 * without escapes, whole numbers, and arrays of these. It allocates nothing, because neighbours
 * send such texts, and the values of a JSON library would take tens of times the size of the text.
 * Every function returns 0, or -1 with *e (ERROR_REFUSED), which names line and column, unless it
 * says otherwise. */

struct json_line {
    const char *begin, *at, *end;
    uint32_t number; /* from 1 */
};

/* A key of an object, and the function that reads its value. */
struct json_key {
    const char *name;
    int (*read)(struct json_line *line, void *into, struct error *e);
};

/* Skips spaces. Returns whether the line ends there. */
bool json_line_is_empty(struct json_line *line);

/* Reads an object with some of these keys, at most 32, each at most once; the line must end after
 * the object. Sets bit i of *seen if keys[i] was there. `into` is for the read functions. */
int json_line_object(struct json_line *line, const struct json_key *keys, unsigned count,
                     void *into, uint32_t *seen, struct error *e);

/* Reads a whole number from `least` to `most`; errors call it `what`. */
int json_line_number(struct json_line *line, const char *what, int64_t least, int64_t most,
                     int64_t *number, struct error *e);

/* Reads a mark, such as `[`, `,` or `]`. json_line_need() fails if something else comes next,
 * json_line_has() returns whether the mark was there. */
int json_line_need(struct json_line *line, char mark, struct error *e);
bool json_line_has(struct json_line *line, char mark);

/* Sets *e to "line 4, column 7: ..." (ERROR_REFUSED). Returns -1. */
int json_line_error(const struct json_line *line, struct error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define IMPORTED_DIGEST_SHOWN 8u /* digits of the digest in the algorithm's name */

struct imported_route {
    uint32_t first; /* index of its first leg */
    uint32_t legs;
    uint32_t line; /* the line of the file; 0: not read yet */
};

struct imported {
    unsigned users;
    struct algorithm algorithm;
    struct torus torus;
    bool known; /* it must be for a torus that is known: see torus_parse_known() */
    uint32_t period[TORUS_MAX_DIMS];
    uint32_t classes; /* sources in the first box of the period */
    uint32_t max_legs;
    struct imported_route *route; /* (class * nodes + destination) * segments + segment */
    struct leg *leg;
    size_t legs, leg_room;
    size_t routes;
    char name[IMPORTED_NAME_SIZE];
    char shown[IMPORTED_NAME_SIZE + 1 + IMPORTED_DIGEST_SHOWN];
    char dims[TORUS_TEXT_SIZE];
    char digest[SHA256_TEXT_SIZE];
};

/* The state of reading a file. */
struct imported_reader {
    struct imported *s;
    const struct torus *only; /* the torus that the schedule must be for; NULL: any */
    struct json_line line;
    bool has_header;

    /* The route of the current line. */
    int64_t source, destination, segment;
    size_t first_leg;
};

/* The route of one segment from the representative of a class. Points into *s. */
struct imported_route *imported_route_at(const struct imported *s, uint32_t class,
                                         uint32_t destination, uint32_t segment);
/* The stored route from which that of this block follows: both ends are moved until the source is
 * in the first box. Points into *s. */
struct imported_route *imported_find_route(const struct imported *s, uint32_t source,
                                           uint32_t destination, uint32_t segment);
/* The source of a class in the first box. */
uint32_t imported_representative(const struct imported *s, uint32_t class);
/* Returns 0 if the schedule is for this torus, otherwise -1 with *e (ERROR_REFUSED). */
int imported_check_torus(const struct imported *s, const struct torus *t, struct error *e);
int imported_no_memory(struct error *e); /* sets *e; returns -1 */

/* Reads the header in r->line, and makes room for the routes. Returns 0, or -1 with *e. */
int imported_read_header(struct imported_reader *r, struct error *e);
