/* The cost of reading MSCCL's XML: work and memory are proportional to the text, up to stated limits. */
#include <inttypes.h>

#include "client/cli/schedule_files/msccl_program.h"
#include "tests/support/cmocka.h"
#include "tests/unit/counted_memory.h"
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

/* For a torus of 2: GPU 0 has `count` thread blocks, each of which waits for the next one. */
static char *msccl_deep(uint32_t count, size_t *length)
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

/* For a torus of 2: two thread blocks of `count` steps, each of which waits for the other's. */
static char *msccl_alternating(uint32_t count, size_t *length)
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

/* For a ring of `nodes`: every GPU sends to every other one on a thread block of its own, all
 * segments of a block in one step. */
static char *msccl_wide(uint32_t nodes, uint32_t segments, size_t *length)
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

#define KIB 1024u
#define MIB (1024u * KIB)

/* Runs XML, which must be valid. Returns how often a step was tried. */
static uint64_t tries_of(const char *xml, size_t length, const struct torus *t, uint32_t *steps)
{
    struct msccl_program program;
    struct msccl_run run;
    uint32_t *targets;
    struct error e;

    if (msccl_parse(&program, xml, length, t, &e) != 0 ||
        msccl_connect(&program, &targets, &e) != 0 || msccl_run(&run, &program, targets, &e) != 0)
        fail_msg("%s", e.text);
    uint64_t tries = run.tries;
    *steps = program.steps;
    msccl_run_free(&run);
    free(targets);
    msccl_program_free(&program);
    return tries;
}

static void check_tries(char *xml, size_t length, const char *dims, uint32_t expected_steps)
{
    struct torus t = msccl_torus(dims);
    uint32_t steps;
    uint64_t tries = tries_of(xml, length, &t, &steps);

    free(xml);
    assert_int_equal(steps, expected_steps);
    assert_true(tries >= steps);
    assert_true(tries <= 3 * (uint64_t)steps);
}

TEST(each_step_is_tried_three_times_at_most)
{
    size_t length;
    char *xml;

    for (uint32_t count = 10; count <= 20000; count *= 10) {
        xml = msccl_deep(count, &length);
        check_tries(xml, length, "2", count + 4);
        xml = msccl_alternating(count, &length);
        check_tries(xml, length, "2", 2 * count + 4);
    }
    for (uint32_t nodes = 4; nodes <= 64; nodes *= 4) {
        char dims[16];
        (void)snprintf(dims, sizeof dims, "%u", nodes);
        xml = msccl_wide(nodes, 4, &length);
        check_tries(xml, length, dims, 2 * nodes * (nodes - 1));
    }
}

/* Reads XML, which must be valid. Returns the most memory that this took. */
static size_t memory_of(const char *xml, size_t length, const struct torus *t)
{
    struct error e;
    char *routes;
    size_t size;

    memory_count();
    assert_success(msccl_read(xml, length, t, &routes, &size, &e), e);
    size_t peak = memory_peak();
    free(routes);
    return peak;
}

TEST(memory_is_in_proportion_to_the_text)
{
    struct torus pair = msccl_torus("2"), ring = msccl_torus("64");
    size_t length;
    char *xml;

    for (uint32_t count = 10; count <= 40000; count *= 20) {
        xml = msccl_deep(count, &length);
        assert_true(memory_of(xml, length, &pair) < MIB + 4 * length);
        free(xml);
        xml = msccl_alternating(count, &length);
        assert_true(memory_of(xml, length, &pair) < MIB + 4 * length);
        free(xml);
    }
    xml = msccl_wide(64, 1, &length);
    assert_true(memory_of(xml, length, &ring) < MIB + 4 * length);
    free(xml);
}

/* GPUs 0 to n-1 with these numbers of chunks; the first one has a thread block with `steps` steps,
 * the second one a thread block with one that receives. Returns text to be freed by the caller. */
static char *greedy(uint32_t nodes, uint32_t chunks, uint32_t scratch, const char *step,
                    uint32_t steps)
{
    char *xml;
    size_t length;
    FILE *out = open_memstream(&xml, &length);

    assert_non_null(out);
    (void)fprintf(out, "<algo ngpus='%u' coll='alltoall'>\n", nodes);
    for (uint32_t id = 0; id < nodes; id++) {
        (void)fprintf(out, "<gpu id='%u' i_chunks='%u' o_chunks='%u' s_chunks='%u'>", id, chunks,
                      chunks, scratch);
        if (id < 2)
            (void)fprintf(out, "<tb id='0' send='%d' recv='%d' chan='0'>\n", id == 0 ? 1 : -1,
                          id == 0 ? -1 : 0);
        for (uint32_t i = 0; id == 0 && i < steps; i++)
            (void)fprintf(out, "<step s='%u' %s depid='-1' deps='-1'/>\n", i, step);
        if (id == 1)
            (void)fputs("<step s='0' type='r' dstbuf='o' dstoff='0' cnt='1' depid='-1' "
                        "deps='-1'/>",
                        out);
        (void)fputs(id < 2 ? "</tb></gpu>\n" : "</gpu>\n", out);
    }
    (void)fputs("</algo>\n", out);
    assert_int_equal(fclose(out), 0);
    return xml;
}

struct greedy_case {
    const char *dims;
    uint32_t nodes, chunks, scratch;
    const char *step;
    uint32_t steps;
    const char *part, *other;
    size_t memory;
};

static void check_greedy(const struct greedy_case *c)
{
    struct torus t = msccl_torus(c->dims);
    char *xml = greedy(c->nodes, c->chunks, c->scratch, c->step, c->steps);

    assert_true(strlen(xml) < 500 * (size_t)KIB);
    memory_count();
    msccl_refused(xml, &t, c->part, c->other);
    if (memory_peak() > c->memory)
        fail_msg("%s: %zu bytes", c->part, memory_peak());
    free(xml);
}

TEST(a_short_text_cannot_take_much_memory)
{
    static const struct greedy_case cases[] = {
        /* The error names the line that asks for too much. */
        {"128", 128, 32768, 65000, "type='s' srcbuf='i' srcoff='0' cnt='32768'", 300,
         "line 2: i_chunks=\"32768\" of 128 GPUs are 4194304 routes", "1048576", MIB},
        {"64", 64, 128, 1u << 24, "type='nop'", 1, "line 2: i_chunks, o_chunks and s_chunks",
         "16777216 that all GPUs together may have", MIB},
        {"64", 64, 128, 1u << 19, "type='nop'", 1, "i_chunks, o_chunks and s_chunks of the GPUs",
         "more than the 16777216", MIB},
        {"2", 2, 514, 0, "type='nop'", 1, "line 2: i_chunks=\"514\" are 257 segments",
         "more than the 256", MIB},
        {"2", 2, 512, 0, "type='s' srcbuf='i' srcoff='0' cnt='512'", 4000,
         "line 3279: all steps up to this one send", "more than 1677721 chunks", 2 * MIB},
        {"2", 2, 512, 1u << 23,
         "type='cpy' srcbuf='s' srcoff='0' dstbuf='s' dstoff='0' "
         "cnt='8388608'",
         4, "line 5: all steps up to this one copy more chunks", "16777216", MIB},
        /* Scratch buffers that no step uses take no memory. */
        {"64", 64, 128, 200000, "type='nop'", 1,
         "waits for ever: of the 1 chunks that it receives from GPU 0", "0 come", MIB},
        /* The largest numbers that can be requested. */
        {"2", 2, 512, 8387000,
         "type='cpy' srcbuf='s' srcoff='0' dstbuf='s' dstoff='8386992' cnt='8'", 1,
         "waits for ever", "line 6", 34 * (size_t)MIB},
        {"2", 2, 512, 0, "type='s' srcbuf='i' srcoff='0' cnt='512'", 3276,
         "after it, chunks come from GPU 0 that are never received: 1677311", "GPU 1",
         27 * (size_t)MIB},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_greedy(&cases[i]);
}

TEST(any_allocation_may_fail)
{
    struct torus t = msccl_torus("2");
    size_t length, size;
    char *xml = msccl_deep(100, &length), *routes;
    struct error e;
    bool failed = true;

    for (unsigned after = 0; failed; after++) {
        memory_count();
        memory_fail(after);
        int rc = msccl_read(xml, length, &t, &routes, &size, &e);
        failed = memory_has_failed();
        if (!failed) {
            assert_int_equal(rc, 0);
            break;
        }
        assert_fails(rc, e, ERROR_MEMORY, "");
        assert_null(routes);
    }
    free(routes);
    free(xml);
}

/* A chunk that two GPUs pass to each other `times` times. */
static char *passed(uint32_t times)
{
    char *xml;
    size_t length;
    FILE *out = open_memstream(&xml, &length);

    assert_non_null(out);
    (void)fputs("<algo ngpus='2' coll='alltoall'>\n", out);
    for (uint32_t id = 0; id < 2; id++) {
        (void)fprintf(out,
                      "<gpu id='%u' i_chunks='2' o_chunks='2' s_chunks='1'>"
                      "<tb id='0' send='%u' recv='%u' chan='0'>\n",
                      id, 1 - id, 1 - id);
        for (uint32_t i = 0; i < times / 2; i++)
            (void)fprintf(out,
                          "<step s='%u' type='%s' srcbuf='i' srcoff='1' dstbuf='s' dstoff='0' "
                          "cnt='1' depid='-1' deps='-1'/>\n",
                          i, id == 0 && i == 0 ? "s" : "rcs");
        (void)fputs("</tb></gpu>\n", out);
    }
    (void)fputs("</algo>\n", out);
    assert_int_equal(fclose(out), 0);
    return xml;
}

TEST(a_schedule_has_so_many_steps_at_most)
{
    struct torus t = msccl_torus("2");
    char *xml = passed(65536);

    msccl_refused(xml, &t, "chunks come from GPU 1 that are never received: 1", "step 32767");
    free(xml);
    xml = passed(65540);
    msccl_refused(xml, &t, "GPU 0, thread block 0, step 32768: it sends after 65536 others",
                  "at most 65536 steps");
    free(xml);
}
