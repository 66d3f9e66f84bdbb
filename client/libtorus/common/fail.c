#include "client/libtorus/common/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/error.h"
#include "proto/text.h"

/* The daemon's codes come over the wire; the public ones are the same numbers. */
_Static_assert((int)TORUS_ERROR_USAGE == (int)ERROR_USAGE, "error codes");
_Static_assert((int)TORUS_ERROR_REFUSED == (int)ERROR_REFUSED, "error codes");
_Static_assert((int)TORUS_ERROR_LINK == (int)ERROR_LINK, "error codes");
_Static_assert((int)TORUS_ERROR_PROTOCOL == (int)ERROR_PROTOCOL, "error codes");
_Static_assert((int)TORUS_ERROR_IO == (int)ERROR_IO, "error codes");
_Static_assert((int)TORUS_ERROR_MEMORY == (int)ERROR_MEMORY, "error codes");
_Static_assert((int)TORUS_ERROR_TIMEOUT == (int)ERROR_TIMEOUT, "error codes");
_Static_assert((int)TORUS_ERROR_CANCELLED == (int)ERROR_CANCELLED, "error codes");
_Static_assert((int)TORUS_ERROR_DAMAGED == (int)ERROR_DAMAGED, "error codes");
_Static_assert((int)TORUS_ERROR_IN_DOUBT == (int)ERROR_IN_DOUBT, "error codes");
_Static_assert((int)TORUS_ERROR_BUSY == (int)ERROR_BUSY, "error codes");

const char *torus_error_name(enum torus_error_code code)
{
    switch (code) {
    case TORUS_ERROR_NO_DAEMON:
        return "no daemon";
    case TORUS_ERROR_LOST:
        return "lost";
    case TORUS_ERROR_NONE:
    case TORUS_ERROR_USAGE:
    case TORUS_ERROR_REFUSED:
    case TORUS_ERROR_LINK:
    case TORUS_ERROR_PROTOCOL:
    case TORUS_ERROR_IO:
    case TORUS_ERROR_MEMORY:
    case TORUS_ERROR_TIMEOUT:
    case TORUS_ERROR_CANCELLED:
    case TORUS_ERROR_DAMAGED:
    case TORUS_ERROR_IN_DOUBT:
    case TORUS_ERROR_BUSY:
        break;
    }
    return error_name((enum error_code)code);
}

int fail(struct torus_error *e, enum torus_error_code code, const char *format, ...)
{
    if (e != NULL) {
        va_list ap;
        va_start(ap, format);
        e->code = code;
        e->exchange[0] = '\0';
        (void)vsnprintf(e->text, sizeof e->text, format, ap);
        va_end(ap);
        text_clean(e->text);
    }
    return -1;
}

int fail_memory(struct torus_error *e)
{
    return fail(e, TORUS_ERROR_MEMORY, "out of memory");
}

void fail_exchange(struct torus_error *e, const char *id)
{
    copy_text(e->exchange, sizeof e->exchange, id);
}

void copy_text(char *out, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);
    memcpy(out, text, length);
    out[length] = '\0';
    text_clean(out);
}
