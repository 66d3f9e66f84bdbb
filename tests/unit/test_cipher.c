/* Encrypted links: only bytes that were sealed at one end open at the other. */
#include <sodium.h>

#include "daemon/torusd/net/cipher.h"
#include "tests/support/cmocka.h"

#define LONGEST (5u << 20) /* a head may have 4 MiB */
#define HEADER crypto_secretstream_xchacha20poly1305_HEADERBYTES

struct pair {
    struct cipher *one, *other;
};

static uint32_t state_of_chance;

static uint32_t chance(uint32_t below)
{
    state_of_chance = state_of_chance * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state_of_chance * below >> 32);
}

static int begin(void **state)
{
    return sodium_init() < 0 ? -1 : 0;
}

static struct pair open_pair(void)
{
    struct link_keys mine, theirs;
    struct pair p;

    memset(mine.send, 1, CIPHER_KEY_SIZE);
    memset(mine.receive, 2, CIPHER_KEY_SIZE);
    memcpy(theirs.send, mine.receive, CIPHER_KEY_SIZE);
    memcpy(theirs.receive, mine.send, CIPHER_KEY_SIZE);
    p = (struct pair){cipher_new(&mine), cipher_new(&theirs)};
    assert_non_null(p.one);
    assert_non_null(p.other);
    return p;
}

static void close_pair(struct pair *p)
{
    cipher_free(p->one);
    cipher_free(p->other);
}

/* Opens received bytes in pieces of any length. Returns the number of bytes, or -1. */
static long open_all(struct cipher *c, const uint8_t *bytes, size_t length, uint8_t *to)
{
    size_t done = 0, opened = 0;
    int result;

    while (done < length) {
        size_t room, n;
        uint8_t *at = cipher_room(c, &room);
        n = 1 + chance(40000);
        n = n < room ? n : room;
        n = n < length - done ? n : length - done;
        assert_true(n > 0);
        memcpy(at, bytes + done, n);
        cipher_received(c, n);
        done += n;
        for (size_t one; (result = cipher_open(c, to + opened, &one)) != 0; opened += one) {
            if (result < 0)
                return -1;
            assert_in_range(one, 1, CIPHER_RECORD);
        }
    }
    return (long)opened;
}

TEST_WITH(begin, NULL, sealed_bytes_open)
{
    static const size_t lengths[] = {1,
                                     2,
                                     CIPHER_RECORD - 1,
                                     CIPHER_RECORD,
                                     CIPHER_RECORD + 1,
                                     3 * CIPHER_RECORD,
                                     100000,
                                     LONGEST,
                                     17,
                                     0,
                                     5};
    uint8_t *from = malloc(LONGEST), *to = malloc(LONGEST + CIPHER_RECORD);
    struct pair p = open_pair();

    assert_non_null(from);
    assert_non_null(to);
    for (size_t i = 0; i < LONGEST; i++)
        from[i] = (uint8_t)chance(256);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (unsigned direction = 0; direction < 2; direction++) {
            struct cipher *sender = direction == 0 ? p.one : p.other;
            struct cipher *receiver = direction == 0 ? p.other : p.one;
            size_t done = 0, sealed;
            while (done < lengths[i]) {
                size_t n = 1 + chance(50000);
                n = n < lengths[i] - done ? n : lengths[i] - done;
                assert_int_equal(cipher_seal(sender, from + done, n), 0);
                done += n;
                if (chance(4) == 0)
                    assert_int_equal(cipher_end_record(sender), 0);
            }
            const uint8_t *out = cipher_sealed(sender, &sealed);
            assert_non_null(out);
            if (lengths[i] >= 16)
                assert_null(memmem(out, sealed, from, 16));
            assert_int_equal(open_all(receiver, out, sealed, to), lengths[i]);
            assert_memory_equal(from, to, lengths[i]);
            cipher_written(sender);
            (void)cipher_sealed(sender, &sealed);
            assert_int_equal(sealed, 0);
        }
    close_pair(&p);
    free(from);
    free(to);
}

/* Three records of 100 bytes after the header of their stream. */
static uint8_t *three_records(struct cipher *c, size_t *length, size_t *record)
{
    uint8_t plain[100] = "something", *copy;
    const uint8_t *out;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(cipher_seal(c, plain, sizeof plain), 0);
        assert_non_null(cipher_sealed(c, length));
    }
    out = cipher_sealed(c, length);
    *record = (*length - HEADER) / 3;
    assert_int_equal(*length, HEADER + 3 * *record);
    copy = malloc(*length);
    assert_non_null(copy);
    memcpy(copy, out, *length);
    return copy;
}

TEST_WITH(begin, NULL, a_flipped_bit_does_not_open)
{
    uint8_t to[CIPHER_RECORD];
    size_t length = 1, record;

    for (size_t at = 0; at < length; at++) {
        struct pair p = open_pair();
        uint8_t *bytes = three_records(p.one, &length, &record);
        bytes[at] ^= (uint8_t)(1u << chance(8));
        /* If a length was made too large, the cipher waits for that many bytes, and not for the record after it. */
        long result = open_all(p.other, bytes, length, to);
        assert_true(result == -1 || (at >= HEADER && (at - HEADER) % record < 2 && result < 300));
        free(bytes);
        close_pair(&p);
    }
}

TEST_WITH(begin, NULL, records_open_in_their_order_only)
{
    static const unsigned order[][3] = {{1, 0, 2}, {0, 0, 1}, {0, 2, 1}, {2, 1, 0}, {0, 1, 1}};
    uint8_t to[CIPHER_RECORD], *bytes, *mixed;
    size_t length, record;

    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        struct pair p = open_pair();
        bytes = three_records(p.one, &length, &record);
        mixed = malloc(length);
        assert_non_null(mixed);
        memcpy(mixed, bytes, HEADER);
        for (unsigned k = 0; k < 3; k++)
            memcpy(mixed + HEADER + k * record, bytes + HEADER + order[i][k] * record, record);
        assert_int_equal(open_all(p.other, mixed, length, to), -1);
        free(bytes);
        free(mixed);
        close_pair(&p);
    }
}

TEST_WITH(begin, NULL, other_streams_do_not_open)
{
    struct pair p = open_pair(), q;
    uint8_t to[CIPHER_RECORD], *bytes;
    size_t length, record;

    bytes = three_records(p.one, &length, &record);
    assert_int_equal(open_all(p.one, bytes, length, to), -1); /* sent back */
    struct link_keys keys = {{3}, {4}};
    q = (struct pair){cipher_new(&keys), NULL};
    assert_int_equal(open_all(q.one, bytes, length, to), -1); /* of another connection */
    free(bytes);
    close_pair(&p);
    close_pair(&q);
}

TEST_WITH(begin, NULL, impossible_lengths_do_not_open)
{
    static const unsigned lengths[] = {0, 1, 16, 17, CIPHER_RECORD + 18, 65535};
    uint8_t to[CIPHER_RECORD], bytes[HEADER + 2] = {0};

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct pair p = open_pair();
        bytes[HEADER] = (uint8_t)(lengths[i] >> 8);
        bytes[HEADER + 1] = (uint8_t)lengths[i];
        assert_int_equal(open_all(p.other, bytes, sizeof bytes, to), -1);
        close_pair(&p);
    }
}
