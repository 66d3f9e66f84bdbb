#include "daemon/torusd/engine/generated_blocks.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/engine/digest.h"

#define CHUNK (64u * 1024u)

/* A block is a sequence of little-endian words in arithmetic progression from a mixed start. This is cheap
 * enough not to distort measurements, and no two positions or blocks look alike. */
struct progression {
    uint64_t start, step;
};

static struct progression block_progression(uint64_t seed, uint32_t source, uint32_t destination)
{
    uint64_t start = digest_mix(seed ^ digest_mix((uint64_t)source << 32 | destination));
    return (struct progression){start, digest_mix(start) | 1};
}

/* To keep up with the links, blocks are generated and checked in vectors, two of LANES words at a time. */
#define LANES 2u
#define RUN (2 * LANES * 8u) /* bytes */
typedef uint64_t words __attribute__((vector_size(8 * LANES)));

/* Always inline: with sanitizers, a call costs far more than the function. */
static inline __attribute__((always_inline)) words little_endian(words value)
{
    for (unsigned lane = 0; lane < LANES; lane++)
        value[lane] = htole64(value[lane]);
    return value;
}

/* Writes the progression's words from `first` on, `runs` times RUN bytes. */
static void fill_words(uint8_t *out, uint32_t runs, uint64_t first, uint64_t step)
{
    words a = {first, first + step}, b = a + 2 * step;

    for (; runs > 0; runs--, out += RUN) {
        words at = little_endian(a), behind = little_endian(b);
        memcpy(out, &at, sizeof at);
        memcpy(out + sizeof at, &behind, sizeof behind);
        a += 4 * step;
        b += 4 * step;
    }
}

/* Whether the bytes at `data` are those words. */
static bool are_words(const uint8_t *data, uint32_t runs, uint64_t first, uint64_t step)
{
    words a = {first, first + step}, b = a + 2 * step, differ = {0};

    for (; runs > 0; runs--, data += RUN) {
        words at, behind;
        memcpy(&at, data, sizeof at);
        memcpy(&behind, data + sizeof at, sizeof behind);
        differ |= (at ^ little_endian(a)) | (behind ^ little_endian(b));
        a += 4 * step;
        b += 4 * step;
    }
    return (differ[0] | differ[1]) == 0;
}

static uint64_t word_at(const struct progression *p, uint64_t index)
{
    return htole64(p->start + index * p->step);
}

void pattern_fill(uint8_t *out, uint32_t length, uint64_t seed, uint32_t source,
                  uint32_t destination, uint64_t offset)
{
    struct progression p = block_progression(seed, source, destination);
    uint32_t done = 0;

    while (done < length) {
        uint64_t at = offset + done;
        uint64_t word = word_at(&p, at / 8);
        uint32_t skip = (uint32_t)(at % 8);
        uint32_t n = 8 - skip < length - done ? 8 - skip : length - done;
        uint32_t runs = (length - done) / RUN;
        if (n == 8 && runs > 0) {
            fill_words(out + done, runs, p.start + at / 8 * p.step, p.step);
            done += runs * RUN;
            continue;
        }
        memcpy(out + done, (uint8_t *)&word + skip, n);
        done += n;
    }
}

uint32_t pattern_compare(const uint8_t *data, uint32_t length, uint64_t seed, uint32_t source,
                         uint32_t destination, uint64_t offset)
{
    struct progression p = block_progression(seed, source, destination);
    uint32_t done = 0;

    while (done < length) {
        uint64_t at = offset + done;
        uint64_t word = word_at(&p, at / 8);
        uint32_t skip = (uint32_t)(at % 8);
        uint32_t n = 8 - skip < length - done ? 8 - skip : length - done;
        uint32_t runs = (length - done) / RUN;
        if (n == 8 && runs > 0 && are_words(data + done, runs, p.start + at / 8 * p.step, p.step)) {
            done += runs * RUN;
            continue;
        }
        for (uint32_t i = 0; i < n; i++)
            if (data[done + i] != ((uint8_t *)&word)[skip + i])
                return done + i;
        done += n;
    }
    return length;
}

struct pattern_source {
    struct source base;
    uint64_t seed, block_bytes;
    uint32_t rank;
    struct slab_pool *pool;
    struct slab_writer writer;
};

static uint64_t source_size(struct source *s, uint32_t destination)
{
    return source_left(s, destination, ((struct pattern_source *)s)->block_bytes);
}

static int source_read(struct source *s, uint32_t destination, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    struct pattern_source *p = (struct pattern_source *)s;
    uint64_t place, together = source_place(s, destination, p->block_bytes, offset, &place);
    uint32_t length = most < CHUNK ? most : CHUNK;

    if (together == 0)
        return error_set(
            e, ERROR_PROTOCOL,
            "the generated block for node %u has fewer bytes than the exchange wants to send",
            destination);
    if (length > together)
        length = (uint32_t)together;
    uint8_t *at = slab_writer_take(&p->writer, p->pool, length, out);
    if (at == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for generated blocks");
    pattern_fill(at, length, p->seed, p->rank, destination, place);
    return 1;
}

static bool source_opened(struct source *s)
{
    (void)s;
    return true;
}

static int source_lay_out(struct source *s, uint64_t round_bytes, uint32_t segments,
                          struct error *e)
{
    (void)s, (void)round_bytes, (void)segments, (void)e;
    return 0;
}

static bool source_finish(struct source *s)
{
    (void)s;
    return true;
}

static bool source_close(struct source *s)
{
    slab_writer_close(&((struct pattern_source *)s)->writer);
    free(s);
    return true;
}

struct source *pattern_source(uint64_t seed, uint32_t rank, uint64_t block_bytes,
                              struct slab_pool *pool)
{
    static const struct source_ops ops = {.opened = source_opened,
                                          .lay_out = source_lay_out,
                                          .size = source_size,
                                          .read = source_read,
                                          .finish = source_finish,
                                          .close = source_close};
    struct pattern_source *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->base.ops = &ops;
    p->seed = seed;
    p->rank = rank;
    p->block_bytes = block_bytes;
    p->pool = pool;
    return &p->base;
}

struct pattern_sink {
    struct sink base;
    uint64_t seed;
    uint32_t rank;
    bool gather;
};

static int sink_write(struct sink *s, uint32_t origin, uint64_t offset, const struct extent *piece,
                      struct error *e)
{
    const struct pattern_sink *p = (const struct pattern_sink *)s;
    uint32_t good = pattern_compare(piece->data, piece->length, p->seed, origin,
                                    p->gather ? origin : p->rank, offset);

    if (good < piece->length)
        return error_set(e, ERROR_DAMAGED, "block from node %u to node %u is damaged at byte %llu",
                         origin, p->rank, (unsigned long long)(offset + good));
    return 0;
}

static bool sink_finish(struct sink *s)
{
    (void)s;
    return true;
}

static bool sink_opened(struct sink *s)
{
    (void)s;
    return true;
}

static int sink_lay_out(struct sink *s, uint64_t round_bytes, uint32_t segments, struct error *e)
{
    (void)s, (void)round_bytes, (void)segments, (void)e;
    return 0;
}

static int sink_commit(struct sink *s, struct error *e)
{
    (void)s, (void)e; /* not a durable sink */
    return 1;
}

static bool sink_close(struct sink *s, bool keep)
{
    (void)keep;
    free(s);
    return true;
}

struct sink *pattern_sink(uint64_t seed, uint32_t rank, bool gather)
{
    static const struct sink_ops ops = {.opened = sink_opened,
                                        .lay_out = sink_lay_out,
                                        .write = sink_write,
                                        .pending = sink_never_pending,
                                        .finish = sink_finish,
                                        .commit = sink_commit,
                                        .close = sink_close};
    struct pattern_sink *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->base.ops = &ops;
    p->base.check = CHECK_CONTENTS;
    p->seed = seed;
    p->rank = rank;
    p->gather = gather;
    return &p->base;
}
