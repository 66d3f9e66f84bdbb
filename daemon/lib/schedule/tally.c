#include "daemon/lib/schedule/tally.h"

#include <stdbool.h>
#include <stdlib.h>

#define ROOM_LEAST 1024u
#define MULTIPLIER 0x9e3779b97f4a7c15u /* Fibonacci hashing */
#define PROBES_MOST 16u /* average for a find; less than two if keys do not collide */

/* The place of `key` in the table: its entry, or an empty one. */
static struct tally_entry *find_place(struct tally *t, uint64_t key)
{
    size_t mask =
        t->room -
        1; /* a power of two; the highest bits of the product depend on all bits of the key */
    size_t place = (size_t)(key * t->multiplier >> (__builtin_clzll(t->room) + 1));

    t->finds++;
    for (t->probes++; t->at[place].count != 0 && t->at[place].key != key; t->probes++)
        place = (place + 1) & mask;
    return &t->at[place];
}

static bool is_slow(const struct tally *t)
{
    return t->probes > PROBES_MOST * (t->finds + ROOM_LEAST);
}

/* An odd number that depends on all bits of an address. */
static uint64_t multiplier_of(const void *table)
{
    uint64_t x = (uintptr_t)table;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) | 1;
}

/* Moves all entries to a larger table or, if keys collide in this one, to other places. Returns 0,
 * or -1 without memory. */
static int move(struct tally *t)
{
    struct tally other = {.count = t->count,
                          .room = t->room,
                          .multiplier = t->multiplier,
                          .earlier = t->earlier + t->probes};

    if (2 * t->count >= t->room)
        other.room = t->room == 0 ? ROOM_LEAST : 2 * t->room;
    other.at = calloc(other.room, sizeof *other.at);
    if (other.at == NULL)
        return -1;
    if (t->room == 0)
        other.multiplier = MULTIPLIER;
    else if (is_slow(t))
        other.multiplier = multiplier_of(other.at);
    for (size_t i = 0; i < t->room; i++)
        if (t->at[i].count != 0)
            *find_place(&other, t->at[i].key) = t->at[i];
    free(t->at);
    *t = other;
    return 0;
}

int tally_add(struct tally *t, uint64_t key)
{
    return tally_add_many(t, key, 1);
}

int tally_add_many(struct tally *t, uint64_t key, uint64_t count)
{
    if ((2 * t->count >= t->room || is_slow(t)) && move(t) != 0)
        return -1;
    struct tally_entry *entry = find_place(t, key);
    t->count += entry->count == 0;
    entry->key = key;
    entry->count += count;
    return 0;
}

static int compare_entries(const void *a, const void *b)
{
    const struct tally_entry *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

void tally_sort(struct tally *t)
{
    size_t used = 0;

    for (size_t i = 0; i < t->room; i++)
        if (t->at[i].count != 0)
            t->at[used++] = t->at[i];
    if (used == 0)
        return;
    struct tally_entry *shorter = reallocarray(t->at, used, sizeof *shorter);
    if (shorter != NULL)
        t->at = shorter;
    qsort(t->at, used, sizeof *t->at, compare_entries);
    t->room = 0;
}

void tally_free(struct tally *t)
{
    free(t->at);
    *t = (struct tally){0};
}
