#include "proto/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/text.h"

const char *error_name(enum error_code code)
{
    switch (code) {
    case ERROR_NONE:
        return "none";
    case ERROR_USAGE:
        return "usage";
    case ERROR_REFUSED:
        return "refused";
    case ERROR_LINK:
        return "link";
    case ERROR_PROTOCOL:
        return "protocol";
    case ERROR_IO:
        return "io";
    case ERROR_MEMORY:
        return "memory";
    case ERROR_TIMEOUT:
        return "timeout";
    case ERROR_CANCELLED:
        return "cancelled";
    case ERROR_DAMAGED:
        return "damaged";
    case ERROR_IN_DOUBT:
        return "in doubt";
    case ERROR_BUSY:
        return "busy";
    }
    return "unknown";
}

int error_set(struct error *e, enum error_code code, const char *format, ...)
{
    if (e != NULL) {
        va_list ap;
        va_start(ap, format);
        e->code = code;
        e->culprit = (struct culprit){.kind = CULPRIT_NONE};
        (void)vsnprintf(e->text, sizeof e->text, format, ap);
        va_end(ap);
        text_clean(e->text); /* files, peers and clients have written parts of it */
    }
    return -1;
}

int error_wrap(struct error *e, const char *format, ...)
{
    if (e != NULL) {
        char context[sizeof e->text], inner[sizeof e->text];
        va_list ap;
        va_start(ap, format);
        (void)vsnprintf(context, sizeof context, format, ap);
        va_end(ap);
        (void)strcpy(inner, e->text);
        size_t n = strlen(context);
        (void)strcpy(e->text, context);
        (void)strncat(e->text, ": ", sizeof e->text - 1 - n);
        n = strlen(e->text);
        (void)strncat(e->text, inner, sizeof e->text - 1 - n);
        text_clean(e->text);
    }
    return -1;
}

static int set_culprit(struct error *e, enum culprit_kind kind, uint32_t node, uint32_t port)
{
    if (e != NULL)
        e->culprit = (struct culprit){kind, node, port};
    return -1;
}

int error_blame_node(struct error *e, uint32_t node)
{
    return set_culprit(e, CULPRIT_NODE, node, 0);
}

int error_blame_link(struct error *e, uint32_t node, uint32_t port)
{
    return set_culprit(e, CULPRIT_LINK, node, port);
}

int error_blame_program(struct error *e, uint32_t node)
{
    return set_culprit(e, CULPRIT_PROGRAM, node, 0);
}

int error_blame_node_by_default(struct error *e, uint32_t node)
{
    return e != NULL && e->culprit.kind == CULPRIT_NONE ? error_blame_node(e, node) : -1;
}

int error_wrap_node(struct error *e, uint32_t node)
{
    (void)error_blame_node_by_default(e, node);
    return error_wrap(e, "node %u", node);
}
