#include "daemon/schedule/tally.h"

#include <stdlib.h>

#define ROOM_BITS 10u /* of the first table */

/* The place of `key` in the table: the entry that has it, or an empty one. */
static struct tally_entry *find_place(struct tally *t, uint64_t key)
{
    size_t mask = t->room - 1;
    size_t place = (size_t)(key * t->multiplier >> t->shift); /* multiply-shift hashing */

    for (t->probes++; t->at[place].count != 0 && t->at[place].key != key; t->probes++)
        place = (place + 1) & mask;
    return &t->at[place];
}

/* An odd number that depends on all bits of an address, which is a random one. */
static uint64_t multiplier_of(const void *table)
{
    uint64_t x = (uintptr_t)table;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) | 1;
}

static int make_room(struct tally *t)
{
    struct tally larger = {
        .count = t->count,
        .room = t->room == 0 ? 1u << ROOM_BITS : 2 * t->room,
        .shift = t->room == 0 ? 64 - ROOM_BITS : t->shift - 1,
        .probes = t->probes,
    };

    larger.at = calloc(larger.room, sizeof *larger.at);
    if (larger.at == NULL)
        return -1;
    larger.multiplier = multiplier_of(larger.at);
    for (size_t i = 0; i < t->room; i++)
        if (t->at[i].count != 0)
            *find_place(&larger, t->at[i].key) = t->at[i];
    free(t->at);
    *t = larger;
    return 0;
}

int tally_add(struct tally *t, uint64_t key)
{
    if (2 * t->count >= t->room && make_room(t) != 0)
        return -1;
    struct tally_entry *entry = find_place(t, key);
    t->count += entry->count == 0;
    entry->key = key;
    entry->count++;
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
