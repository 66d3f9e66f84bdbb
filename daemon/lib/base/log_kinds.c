#include "daemon/lib/base/log_kinds.h"

#include <stddef.h>
#include <stdio.h>

#include "proto/elapsed.h"

static struct log_kind *find_kind(struct log_kinds *all, const char *format)
{
    for (unsigned i = 0; i < all->count; i++)
        if (all->kind[i].format == format)
            return &all->kind[i];
    if (all->count == LOG_KINDS)
        return NULL;
    struct log_kind *k = &all->kind[all->count++];
    k->format = format;
    return k;
}

bool log_kinds_take(struct log_kinds *all, const char *format, int level, const char *text,
                    uint64_t now)
{
    struct log_kind *k = find_kind(all, format);

    if (k == NULL)
        return true;
    if (k->owed_until < now)
        k->owed_until = now;
    if (k->owed_until - now <= (LOG_KIND_AT_ONCE - 1) * LOG_KIND_LINE_NS) {
        k->owed_until += LOG_KIND_LINE_NS;
        return true;
    }
    if (k->left_out++ == 0)
        k->since = now;
    k->level = level;
    (void)snprintf(k->last, sizeof k->last, "%s", text);
    return false;
}

struct log_kind *log_kinds_left_out(struct log_kinds *all, uint64_t now, uint64_t time)
{
    for (unsigned i = 0; i < all->count; i++)
        if (all->kind[i].left_out > 0 && elapsed(all->kind[i].since, now) >= time)
            return &all->kind[i];
    return NULL;
}
