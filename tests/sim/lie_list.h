/* The consequences of lies that proto/peer-trust.md states, and the observed ones. */
#pragma once

#include "tests/sim/lie_scenes.h"

#define LIE_FIELDS_MOST 400u

/* A line of proto/peer-trust.md. */
struct lie_line {
    char name[LIE_NAME_SIZE];
    enum lie_result result; /* the worst consequence according to the line */
    enum lie_named named;
    bool seen;
};

/* The observed consequences of lies in a field, for both ways of lying. */
struct lie_found {
    enum lie_result worst;
    enum lie_named least_named;
    char failure[sizeof((struct error *)0)->text]; /* a failure that names so little */
};

struct lie_list {
    struct lie_line line[LIE_FIELDS_MOST];
    size_t lines;
    struct lie_field field[LIE_FIELDS_MOST];
    struct lie_found found[LIE_FIELDS_MOST]; /* by field */
    size_t fields;
};

/* Reads the lines of this file, and all fields of messages. Fails the test if a line states no consequence. */
void lie_list_read(struct lie_list *list, const char *path);
/* The line of a field; NULL if there is none. */
struct lie_line *lie_list_line(struct lie_list *list, const char *name);
/* Notes the consequence of a lie in a field; `failure` is copied. */
void lie_list_note(struct lie_list *list, const struct lie_field *field, enum lie_result result,
                   enum lie_named named, const char *failure);
