/* What proto/peer-trust.md says comes of lies, and what has come of them. */
#ifndef TORUSD_TESTS_SIM_LIE_LIST_H
#define TORUSD_TESTS_SIM_LIE_LIST_H

#include "tests/sim/lie_scenes.h"

#define LIE_FIELDS_MOST 400u

/* A line of proto/peer-trust.md. */
struct lie_line {
    char name[LIE_NAME_SIZE];
    enum lie_result result; /* at worst, as it says */
    enum lie_named named;
    bool seen;
};

/* What the lies in a field have come to, in both ways to tell them. */
struct lie_found {
    enum lie_result worst;
    enum lie_named least_named;
    char failure[sizeof((struct error *)0)->text]; /* that names so little */
};

struct lie_list {
    struct lie_line line[LIE_FIELDS_MOST];
    size_t lines;
    struct lie_field field[LIE_FIELDS_MOST];
    struct lie_found found[LIE_FIELDS_MOST]; /* by field */
    size_t fields;
};

/* Reads the lines of this file, and all fields that there are. Fails the test if a line does not say what comes of it. */
void lie_list_read(struct lie_list *list, const char *path);
/* NULL: there is none. */
struct lie_line *lie_list_line(struct lie_list *list, const char *name);
/* Notes what has come of a lie in a field of the list; `failure` is copied. */
void lie_list_note(struct lie_list *list, const struct lie_field *field, enum lie_result result,
                   enum lie_named named, const char *failure);

#endif
