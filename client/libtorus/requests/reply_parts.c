#include "client/libtorus/requests/reply_parts.h"

#include <math.h>
#include <stdlib.h>

#include "client/libtorus/common/fail.h"
#include "proto/text.h"

void *array_new(size_t count, size_t size)
{
    return calloc(count > 0 ? count : 1, size);
}

const char *clean_text(char *text)
{
    text_clean(text);
    return text;
}

int invalid_reply(struct torus_error *e, const char *what)
{
    return fail(e, TORUS_ERROR_PROTOCOL, "the daemon's reply is invalid: %s", what);
}

bool is_measurement(double value)
{
    return isfinite(value) && value >= 0;
}
