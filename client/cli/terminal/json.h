/* Builds the JSON values that commands print. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/lib/schedule/torus.h"

/* Returns a count. A count that is too large for an integer in JSON becomes the largest integer. */
json_t *json_count(uint64_t count);

/* Returns an integer if the number is whole, otherwise a real, or null if it is not finite. */
json_t *json_number(double number);

/* Returns a count, or null for 0, which means unknown. */
json_t *json_known(uint64_t count);

/* Returns json_number(), or null for a number that is not above 0, which means unknown. */
json_t *json_positive(double number);

/* Returns a text, or null for "". */
json_t *json_text(const char *text);

/* Returns `folder` followed by `name`, as valid text, because a path may have any bytes. NULL if memory is short. */
json_t *json_path(const char *folder, const char *name);

/* Returns the value; or frees it and returns NULL, if `result` says that memory was short for a part of it. */
json_t *json_checked(json_t *value, int result);

/* Adds "dims": [4, 8] and, if a dimension does not wrap, "wrap": [true, false]. Returns 0, or another value if memory
 * is short. */
int json_set_torus(json_t *object, const struct torus *t);

/* --- objects from structs --- */

enum json_rule {
    JSON_ALWAYS,
    JSON_KNOWN,   /* null for 0 and "", which mean unknown */
    JSON_PRESENT, /* left out if 0 or "" */
};

/* A member of a struct, as a field of an object. */
struct json_member {
    const char *key; /* NULL ends a list */
    size_t offset;
    char type; /* JSON_TYPE() */
    enum json_rule rule;
    double scale;                  /* the number is divided by this; 0: it is not */
    const char *(*name)(unsigned); /* the text for a value of an enum; NULL: no enum */
};

/* clang-format off */
#define JSON_TYPE(member) _Generic((member), bool: 'b', uint32_t: 'u', uint64_t: 'U', double: 'd', const char *: 's')

/* A list is JSON_MEMBERS(name, rows), or MEMBERS(rows) where it is used. A row is MEMBER(struct_name, member), with a rule
 * or .scale or .name behind it, or MEMBER_AS("key", ...) if the key is not the name of the member. FROM_NS() and FROM_MS()
 * become seconds, REAL() a number that always has decimals. */
#define MEMBER_AS(key_, struct_, member, ...) \
    {.key = (key_), .offset = offsetof(struct struct_, member), \
     .type = JSON_TYPE(((struct struct_ *)NULL)->member), ##__VA_ARGS__}
#define MEMBER(struct_, member, ...) MEMBER_AS(#member, struct_, member, ##__VA_ARGS__)
#define KNOWN(struct_, member) MEMBER(struct_, member, .rule = JSON_KNOWN)
#define PRESENT(struct_, member) MEMBER(struct_, member, .rule = JSON_PRESENT)
#define NAMED(struct_, member, name_) MEMBER(struct_, member, .name = (name_))
#define REAL(struct_, member) MEMBER(struct_, member, .scale = 1)
#define FROM_NS(key_, struct_, member) MEMBER_AS(key_, struct_, member, .scale = 1e9)
#define FROM_MS(key_, struct_, member) MEMBER_AS(key_, struct_, member, .scale = 1e3)
#define JSON_MEMBERS(name_, ...) const struct json_member name_[] = {__VA_ARGS__, {0}}
#define MEMBERS(...) ((const struct json_member[]){__VA_ARGS__, {0}})
/* clang-format on */

/* Adds the members of a struct to an object. Returns 0, or another value if memory is short. */
int json_set_members(json_t *object, const void *from, const struct json_member *members);
/* Returns an object with the members of a struct; and a list of objects, from a list of pointers to structs. NULL if memory
 * is short. */
json_t *json_of(const void *from, const struct json_member *members);
json_t *json_list_of(const void *list, size_t count, const struct json_member *members);
/* Return a list of numbers or texts. */
json_t *json_numbers(const uint32_t *number, size_t count);
json_t *json_texts(const char *const *text, size_t count);
