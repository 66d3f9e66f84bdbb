#include "tests/unit/msccl_growth.h"

#include <inttypes.h>

#include "tests/support/cmocka.h"
#include "tests/unit/msccl_fixture.h"

struct text {
    FILE *out;
    char *bytes;
};

static void begin(struct text *t, size_t *length, uint32_t nodes)
{
    t->out = open_memstream(&t->bytes, length);
    assert_non_null(t->out);
    (void)fprintf(t->out, "<algo name='growth' ngpus='%" PRIu32 "' coll='alltoall'>\n", nodes);
}

static char *end(const struct text *t)
{
    (void)fputs("</algo>\n", t->out);
    assert_int_equal(fclose(t->out), 0); /* sets where the bytes are */
    return t->bytes;
}

static void gpu(const struct text *t, uint32_t id, uint32_t chunks)
{
    (void)fprintf(t->out,
                  "<gpu id='%" PRIu32 "' i_chunks='%" PRIu32 "' o_chunks='%" PRIu32
                  "' s_chunks='0'>\n",
                  id, chunks, chunks);
}

static void block(const struct text *t, uint32_t id, int64_t send, int64_t receive,
                  uint32_t channel)
{
    (void)fprintf(
        t->out, "<tb id='%" PRIu32 "' send='%" PRId64 "' recv='%" PRId64 "' chan='%" PRIu32 "'>\n",
        id, send, receive, channel);
}

/* `count` chunks from the input, or to the output. */
static void move(const struct text *t, uint32_t s, const char *type, uint32_t at, uint32_t count)
{
    (void)fprintf(t->out,
                  "<step s='%" PRIu32 "' type='%s' srcbuf='i' srcoff='%" PRIu32
                  "' dstbuf='o' dstoff='%" PRIu32 "' cnt='%" PRIu32 "' depid='-1' deps='-1'/>\n",
                  s, type, at, at, count);
}

static void wait_for(const struct text *t, uint32_t s, int64_t other, int64_t step)
{
    (void)fprintf(t->out,
                  "<step s='%" PRIu32 "' type='nop' depid='%" PRId64 "' deps='%" PRId64 "'/>\n", s,
                  other, step);
}

/* Two GPUs send each other their blocks; the first one stays open. */
static void begin_pair(struct text *t, size_t *length)
{
    begin(t, length, 2);
    for (uint32_t id = 2; id-- > 0;) {
        gpu(t, id, 2);
        block(t, 0, 1 - id, 1 - id, 0);
        move(t, 0, "s", 1 - id, 1);
        move(t, 1, "r", 1 - id, 1);
        (void)fputs(id == 1 ? "</tb></gpu>\n" : "</tb>\n", t->out);
    }
}

char *msccl_deep(uint32_t count, size_t *length)
{
    struct text t;

    begin_pair(&t, length);
    for (uint32_t i = 1; i <= count; i++) {
        block(&t, i, -1, -1, 0);
        wait_for(&t, 0, i < count ? (int64_t)i + 1 : -1, i < count ? 0 : -1);
        (void)fputs("</tb>\n", t.out);
    }
    (void)fputs("</gpu>\n", t.out);
    return end(&t);
}

char *msccl_alternating(uint32_t count, size_t *length)
{
    struct text t;

    begin_pair(&t, length);
    for (uint32_t i = 1; i <= 2; i++) {
        block(&t, i, -1, -1, 0);
        for (uint32_t s = 0; s < count; s++)
            wait_for(&t, s, i == 2 ? 1 : s > 0 ? 2 : -1, i == 2 ? (int64_t)s : (int64_t)s - 1);
        (void)fputs("</tb>\n", t.out);
    }
    (void)fputs("</gpu>\n", t.out);
    return end(&t);
}

char *msccl_wide(uint32_t nodes, uint32_t segments, size_t *length)
{
    struct text t;

    begin(&t, length, nodes);
    for (uint32_t id = 0; id < nodes; id++) {
        uint32_t blocks = 0;
        gpu(&t, id, nodes * segments);
        for (uint32_t other = 0; other < nodes; other++) {
            if (other == id)
                continue;
            block(&t, blocks++, other, -1, 0);
            move(&t, 0, "s", other * segments, segments);
            (void)fputs("</tb>\n", t.out);
            block(&t, blocks++, -1, other, 0);
            move(&t, 0, "r", other * segments, segments);
            (void)fputs("</tb>\n", t.out);
        }
        (void)fputs("</gpu>\n", t.out);
    }
    return end(&t);
}
