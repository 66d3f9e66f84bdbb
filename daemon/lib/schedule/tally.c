#include "daemon/lib/schedule/tally.h"

#include <stdlib.h>
#include <string.h>

#define MULTIPLIER 0x9e3779b97f4a7c15u /* Fibonacci hashing */
#define ROOM_LEAST 1024u
/* A tally of fewer entries only sorts at the end, and no tally gets more between two sorts. */
#define UNSORTED_LEAST (UINT64_C(1) << 16)
#define UNSORTED_MOST (UINT64_C(1) << 25)
#define CACHED (1u << 16) /* entries that a processor's caches hold, twice */
#define DIGIT_BITS 11u
#define DIGITS (1u << DIGIT_BITS)

static unsigned digit(uint64_t key, unsigned shift)
{
    return (unsigned)(key >> shift) & (DIGITS - 1);
}

/* Sorts by the digit at `shift`, from `from` to `to`; entries with equal digits keep their order. end[d] is then the
 * end of those with digit d. */
static void sort_digit(const struct tally_entry *from, struct tally_entry *to, size_t count,
                       unsigned shift, size_t end[DIGITS])
{
    memset(end, 0, DIGITS * sizeof *end);
    for (size_t i = 0; i < count; i++)
        end[digit(from[i].key, shift)]++;
    for (size_t i = 0, sum = 0; i < DIGITS; i++) {
        const size_t of_digit = end[i];
        end[i] = sum;
        sum += of_digit;
    }
    for (size_t i = 0; i < count; i++)
        to[end[digit(from[i].key, shift)]++] = from[i];
}

/* The bits in which keys differ. */
static uint64_t differing(const struct tally_entry *at, size_t count)
{
    uint64_t bits = 0;

    for (size_t i = 1; i < count; i++)
        bits |= at[i].key ^ at[0].key;
    return bits;
}

/* Sorts by one digit after another, the lowest one first. Returns where the sorted entries are: `at`, or `other`, which
 * has the same room. */
static struct tally_entry *sort_digits(struct tally_entry *at, struct tally_entry *other,
                                       size_t count)
{
    uint64_t bits = differing(at, count);
    size_t end[DIGITS];

    while (bits != 0) {
        const unsigned shift = (unsigned)__builtin_ctzll(bits);
        struct tally_entry *sorted = other;
        sort_digit(at, other, count, shift, end);
        other = at;
        at = sorted;
        bits = shift + DIGIT_BITS < 64 ? bits >> (shift + DIGIT_BITS) << (shift + DIGIT_BITS) : 0;
    }
    return at;
}

/* Appends sorted entries to a list of `used`, and makes one of those with equal keys. Returns the number that the list
 * then has. It may lie before the entries in the same array. */
static size_t append(struct tally_entry *list, size_t used, const struct tally_entry *at,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (used > 0 && list[used - 1].key == at[i].key)
            list[used - 1].count += at[i].count;
        else
            list[used++] = at[i];
    }
    return used;
}

/* Sorts the entries, at least one, and makes one of those with equal keys. Returns 0, or -1 without memory.
 *
 * Many entries are first divided by the highest digit in which they differ, into parts that the caches hold. */
static int merge(struct tally *t)
{
    const uint64_t bits = differing(t->at, t->count);
    struct tally_entry *other = reallocarray(NULL, t->count, sizeof *other);
    size_t end[DIGITS], used = 0;

    if (other == NULL)
        return -1;
    if (t->count <= CACHED) {
        used = append(t->at, 0, sort_digits(t->at, other, t->count), t->count);
    } else {
        const unsigned top = 64 - (unsigned)__builtin_clzll(bits | 1);
        sort_digit(t->at, other, t->count, top > DIGIT_BITS ? top - DIGIT_BITS : 0, end);
        for (size_t i = 0, first = 0; i < DIGITS; first = end[i++])
            used = append(t->at, used, sort_digits(&other[first], &t->at[first], end[i] - first),
                          end[i] - first);
    }
    free(other);
    t->count = t->sorted = used;
    return 0;
}

/* Whether the entries are so many more than after the last sort that sorting again takes little
 * time for each of them. */
static bool is_long(const struct tally *t)
{
    const size_t unsorted = t->count - t->sorted;

    return unsorted >= UNSORTED_MOST || (unsorted >= UNSORTED_LEAST && unsorted >= 7 * t->sorted);
}

/* Returns 0, or -1 without memory. */
static int make_room(struct tally *t)
{
    if (is_long(t) && merge(t) != 0)
        return -1;
    if (t->count < t->room)
        return 0;
    const size_t room = t->room == 0 ? ROOM_LEAST : 2 * t->room;
    struct tally_entry *more = reallocarray(t->at, room, sizeof *more);
    if (more == NULL)
        return -1;
    t->at = more;
    t->room = room;
    return 0;
}

int tally_add(struct tally *t, uint64_t key)
{
    return tally_add_many(t, key, 1);
}

int tally_add_many(struct tally *t, uint64_t key, uint64_t count)
{
    uint32_t *recent = &t->recent[key * MULTIPLIER >> (64 - TALLY_RECENT_BITS)];

    if (*recent < t->count && t->at[*recent].key == key) {
        t->at[*recent].count += count;
        return 0;
    }
    if (t->count == t->room && make_room(t) != 0)
        return -1;
    *recent = (uint32_t)t->count;
    t->at[t->count++] = (struct tally_entry){.key = key, .count = count};
    return 0;
}

int tally_sort(struct tally *t)
{
    if (t->count == 0)
        return 0;
    if (merge(t) != 0)
        return -1;
    struct tally_entry *shorter = reallocarray(t->at, t->count, sizeof *shorter);
    if (shorter != NULL)
        t->at = shorter;
    t->room = t->count;
    return 0;
}

void tally_free(struct tally *t)
{
    free(t->at);
    *t = (struct tally){0};
}
