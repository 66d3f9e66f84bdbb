/* Converts replies to the public structs. Texts and lists of texts stay in the unpacked reply, which the result owns;
 * only the public structs are allocated. */
#pragma once

#include <torus/survey.h>
#include <torus/torus.h>

#include "client/libtorus/common.h"
#include "proto/control.pb-c.h"
#include "proto/control_fields.h"

/* --- results --- */

/* Allocates a public struct of `size` zeroed bytes, which owns `reply` (may be NULL). result_free() frees both and all
 * that the functions below add. Returns NULL with *e and frees the reply if memory is short. */
void *result_new(size_t size, Control__Reply *reply, struct torus_error *e);
void result_free(void *result);
/* Adds memory to the result. Returns `memory`; if there is no memory to note it, frees it, and returns NULL. */
void *result_keep(void *result, void *memory);
/* Adds zeroed memory for `count` elements to the result. Returns NULL only if memory is short. */
void *result_array(void *result, size_t count, size_t size);
/* Adds a list of pointers to `count` elements. Returns NULL if `elements` is NULL, or if memory is short. */
void *result_list(void *result, const void *elements, size_t count, size_t size);
/* Ends a conversion: `filled` is 0, or -1 if it has failed. Stores the result at `to`, a pointer to a pointer (NULL:
 * nobody wants it), or frees it. Returns `filled`. */
int result_end(void *result, int filled, void *to);

/* --- what all conversions need --- */

/* Removes control characters from the text. Returns it. */
const char *clean_text(char *text);
/* Sets *e to a _PROTOCOL error about the daemon's reply. `what` is a clause: "it has no id". Returns -1. */
int invalid_reply(struct torus_error *e, const char *what);
/* Returns whether a number is finite and not negative. */
bool is_measurement(double value);

/* --- conversions --- */

/* Fills *to from the message *from, by a list of fields: CONTROL_LINK(CONTROL_READ). Texts stay in the message. */
#define CONTROL_READ(KIND, type, number, ...) CONTROL_READ_##KIND(__VA_ARGS__)
#define CONTROL_READ_SAME(field) to->field = from->field;
#define CONTROL_READ_SAME_TEXT(field) to->field = clean_text(from->field);
#define CONTROL_READ_OF(part, field) to->field = from->field;
#define CONTROL_READ_NUMBER(field, value, result) to->result = from->field;
#define CONTROL_READ_FLAG(field, value, result) to->result = from->field != 0;
#define CONTROL_READ_TEXT(field, value, result) to->result = clean_text(from->field);
#define CONTROL_READ_NAMED(field, value, result, read) to->result = read(from->field);
#define CONTROL_READ_CODE(field, value, result, read) to->result = read(from->field);

/* Defines a function that converts the list `field` of a message to the list of struct `type` that has these names in a
 * struct of libtorus. */
#define RESULT_LIST(field, Message, whole, type, counted, listed, FIELDS)                          \
    static int fill_##field(struct whole *result, const Message *in, struct torus_error *e)        \
    {                                                                                              \
        struct type *to = result_array(result, in->n_##field, sizeof *to);                         \
                                                                                                   \
        result->counted = in->n_##field;                                                           \
        result->listed = result_list(result, to, in->n_##field, sizeof *to);                       \
        if (result->listed == NULL)                                                                \
            return fail_memory(e);                                                                 \
        for (size_t i = 0; i < in->n_##field; i++, to++) {                                         \
            const __typeof__(**in->field) *from = in->field[i];                                    \
            FIELDS(CONTROL_READ)                                                                   \
        }                                                                                          \
        return 0;                                                                                  \
    }

/* Each function is a convert_fn for the kind of reply in its name. It stores the result at `result` (a struct
 * torus_status ** and so on); the user of the library frees it. It takes ownership of `reply`, also on failure.
 * Returns 0, or -1 with *e: _PROTOCOL if the reply contradicts itself, or _MEMORY. */
int status_from(Control__Reply *reply, void *result, struct torus_error *e);
int links_from(Control__Reply *reply, void *result, struct torus_error *e);
int candidates_from(Control__Reply *reply, void *result, struct torus_error *e);
/* Adds what a reply says of the rates of links; *to stays NULL if it says nothing. Returns 0, or -1 with *e. */
int result_link_rates(void *result, const Control__LinkRates *from,
                      const struct torus_link_rates **to, struct torus_error *e);
/* Here `result` may be NULL. */
int calibration_from(Control__Reply *reply, void *result, struct torus_error *e);
/* Checks that all arrays of a node's trace have the lengths that belong together. Returns 0 with *out, which refers to
 * *t, or -1 with *e. Makes the texts of *t printable. */
int trace_from(Control__Trace *t, struct torus_trace *out, struct torus_error *e);
