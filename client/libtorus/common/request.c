#include "client/libtorus/common/request.h"

#include <string.h>

#include "client/libtorus/common/fail.h"

/* The sizes of these structs in the first version of the ABI. Never change them. A struct must not end in padding,
 * because a later version could put a field there. */
#define REQUEST_SIZE_1 (offsetof(struct torus_request, missing_ok) + 8)
#define COPY_SIZE_1 (offsetof(struct torus_copy, missing_ok) + 8)
#define COSTS_SIZE_1 (offsetof(struct torus_costs, bytes_per_second) + sizeof(double))
#define GROUP_OPTIONS_SIZE_1 (offsetof(struct torus_group_options, unchecked) + 4)
_Static_assert(sizeof(struct torus_group_options) == GROUP_OPTIONS_SIZE_1,
               "the struct has grown, or ends in padding");
_Static_assert(sizeof(struct torus_request) ==
                   offsetof(struct torus_request, schedule) + sizeof(const char *),
               "the struct has grown, or ends in padding");
_Static_assert(sizeof(struct torus_copy) ==
                   offsetof(struct torus_copy, remove_most) + sizeof(uint64_t),
               "the struct has grown, or ends in padding");
_Static_assert(sizeof(struct torus_costs) == COSTS_SIZE_1,
               "the struct has grown, or ends in padding");

/* Copies a struct that begins with struct_size. `least` is its size in the first version, `known` in this version. */
static int read_struct(const void *in, void *out, size_t least, size_t known, const char *init,
                       struct torus_error *e)
{
    const unsigned char *bytes = in;
    size_t size;

    memcpy(&size, in, sizeof size);
    if (size < least)
        return fail(e, TORUS_ERROR_USAGE, "struct_size is not set: call %s() first", init);
    for (size_t i = known; i < size; i++)
        if (bytes[i] != 0)
            return fail(
                e, TORUS_ERROR_USAGE,
                "the program uses fields that libtorus %s does not know: it was built for a "
                "later version",
                TORUSD_VERSION);
    memset(out, 0, known);
    memcpy(out, in, size < known ? size : known);
    return 0;
}

int request_read(const struct torus_request *in, struct torus_request *out, struct torus_error *e)
{
    static const char none[sizeof out->reserved];

    if (read_struct(in, out, REQUEST_SIZE_1, sizeof *out, "torus_request_init", e) != 0)
        return -1;
    if (memcmp(out->reserved, none, sizeof none) != 0)
        return fail(e, TORUS_ERROR_USAGE, "the reserved bytes of the request are not 0");
    return 0;
}

int group_options_read(const struct torus_group_options *in, struct torus_group_options *out,
                       struct torus_error *e)
{
    static const char none[sizeof out->reserved];

    if (read_struct(in, out, GROUP_OPTIONS_SIZE_1, sizeof *out, "torus_group_options_init", e) != 0)
        return -1;
    if (memcmp(out->reserved, none, sizeof none) != 0)
        return fail(e, TORUS_ERROR_USAGE, "the reserved bytes of the options are not 0");
    return 0;
}

int copy_read(const struct torus_copy *in, struct torus_copy *out, struct torus_error *e)
{
    static const char none[sizeof out->reserved];

    if (read_struct(in, out, COPY_SIZE_1, sizeof *out, "torus_copy_init", e) != 0)
        return -1;
    if (memcmp(out->reserved, none, sizeof none) != 0)
        return fail(e, TORUS_ERROR_USAGE, "the reserved bytes of the request are not 0");
    return 0;
}

int costs_read(const struct torus_costs *in, struct torus_costs *out, struct torus_error *e)
{
    return read_struct(in, out, COSTS_SIZE_1, sizeof *out, "torus_costs_init", e);
}

char *wire_mode(enum torus_mode mode)
{
    if (mode == TORUS_MODE_ANY)
        return (char *)(uintptr_t) "";
    return (char *)(uintptr_t)torus_mode_name(mode);
}
