#include "daemon/torusd/group/restart/agreement.h"

#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/group/calls/calls.h"
#include "daemon/torusd/group/record/call.h"
#include "daemon/torusd/group/record/early_frames.h"
#include "daemon/torusd/group/restart/calls_restart.h"
#include "proto/text.h"

#define BYTES ((uint32_t)sizeof((struct agreement *)0)->result)

static uint64_t agreement_size(struct source *s, uint32_t destination)
{
    (void)s, (void)destination;
    return BYTES;
}

static int agreement_read(struct source *s, uint32_t destination, uint64_t offset, uint32_t most,
                          struct extent *out, struct error *e)
{
    struct agreement *a = (struct agreement *)((char *)s - offsetof(struct agreement, source));
    uint64_t left = BYTES - offset;

    (void)destination, (void)e;
    out->slab = slab_ref(a->slab);
    out->data = a->slab->data + offset;
    out->length = left < most ? (uint32_t)left : most;
    return 1;
}

static int agreement_write(struct sink *s, uint32_t origin, uint64_t offset,
                           const struct extent *piece, struct error *e)
{
    struct agreement *a = (struct agreement *)((char *)s - offsetof(struct agreement, sink));

    (void)origin, (void)e;
    if (offset <= BYTES && piece->length <= BYTES - offset)
        memcpy((uint8_t *)&a->result + offset, piece->data, piece->length);
    return 0;
}

static const struct source_ops source_ops = {.size = agreement_size, .read = agreement_read};
static const struct sink_ops sink_ops = {.write = agreement_write, .pending = sink_never_pending};

static int start_agreement(struct part *p, struct error *e)
{
    struct session *s = p->session;
    struct agreement *a = &p->agreement;
    struct agreed here = {0};
    const struct reducing_options options = {.type = REDUCTION_UINT64,
                                             .operation = REDUCTION_MAX,
                                             .everywhere = true,
                                             .unchecked = s->unchecked};

    a->mark = (struct peer_group_call){.number = STAGE_AGREEMENT, .part = p->mask};
    a->source.ops = &source_ops;
    a->sink.ops = &sink_ops;
    a->slab = slab_without_pool(BYTES, NULL, NULL);
    if (a->slab == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a group");
    calls_report(p, &here);
    here.first = ~here.first;
    memcpy(a->slab->data, &here, sizeof here);
    const struct engine_setup setup = {
        .router = s->base.set.router,
        .part = p->place,
        .call = &a->mark,
        .handle = s->base.set.handle,
        .source = &a->source,
        .sink = &a->sink,
        .relayed = exchanges_relayed_frame(s->groups->exchanges),
        .segments = 1,
        .window = 1,
        .round_bytes = BYTES,
    };
    a->engine = reducing_new(&setup, &p->tree, &options, e);
    if (a->engine == NULL)
        return -1;
    a->engine->rounds = 1;
    part_tell_lost(p, a->engine);
    engine_admit(a->engine, 0);
    return early_frames_give(p, STAGE_AGREEMENT, a->engine, e);
}

void agreement_begin(struct part *p)
{
    struct error e;

    if (start_agreement(p, &e) != 0)
        session_fail(p->session, &e);
    agreement_advance(p);
}

void agreement_free(struct part *p)
{
    struct agreement *a = &p->agreement;

    engine_free(a->engine);
    if (a->slab != NULL)
        slab_unref(a->slab);
    *a = (struct agreement){0};
}

/* Continues a part that was not opened anywhere, so no call was carried out there. Calls that wait in it may
 * have become large, or small. */
static void resume_unopened(struct part *p)
{
    struct agreed nothing = {0};
    struct error e;

    calls_report(p, &nothing);
    if (calls_resume(p, &nothing, &e) != 0)
        session_fail(p->session, &e);
    p->agreed = true;
}

/* Continues in the parts. Members of the whole know which parts were opened: the call that opened a part is
 * over somewhere, so all members have made it, and members may have called something in the part. */
static void continue_parts(struct session *s, const struct agreed *agreed)
{
    for (struct part *p = s->part->next; p != NULL; p = p->next) {
        bool opened = p->has_table;
        if (p->agreed)
            continue; /* the part is new */
        for (const struct call *c = s->part->calls; c != NULL && !opened; c = c->next)
            opened = c->what.call.operation == GROUP_PART && c->what.call.part == p->mask &&
                     c->number - agreed->first < AGREEMENT_CALLS / 2 &&
                     agreed->over[c->number % AGREEMENT_CALLS] != OVER_NOWHERE;
        if (opened)
            agreement_begin(p);
        else
            resume_unopened(p);
    }
}

static unsigned made_again(const struct part *p)
{
    unsigned n = 0;

    for (const struct call *c = p->calls; c != NULL; c = c->next)
        n += !c->internal;
    return n;
}

void agreement_advance(struct part *p)
{
    struct session *s = p->session;
    struct agreement *a = &p->agreement;
    struct agreed agreed;
    const struct error *failed;
    struct error e;

    if (a->engine == NULL || s->base.failure.code != ERROR_NONE)
        return;
    failed = engine_failed(a->engine);
    if (failed != NULL) {
        session_fail(s, failed);
        return;
    }
    if (a->engine->rounds_finished == 0)
        return;
    agreed = a->result;
    agreed.first = ~agreed.first;
    agreement_free(p);
    if (p->mask == 0)
        continue_parts(s, &agreed);
    if (calls_resume(p, &agreed, &e) != 0) {
        session_fail(s, &e);
        return;
    }
    p->agreed = true;
    log_debug("group \"%s\", part 0x%x: %u %s from call %llu on", s->name, p->mask, made_again(p),
              text_plural(made_again(p), "call continues", "calls continue"),
              (unsigned long long)agreed.first);
    if (p->mask == 0 && s->over)
        session_is_over(s);
    calls_advance(p);
}
