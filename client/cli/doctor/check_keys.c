/* Cluster keys, and how far a change of the key has got. */
#include <stdio.h>
#include <string.h>

#include "client/cli/doctor/doctor.h"

static const char *key_of(const struct doctor *d, uint32_t node, size_t index)
{
    const struct torus_status *s = d->node[node].status;

    return index < s->key_count ? s->keys[index] : "";
}

static bool accepts(const struct doctor *d, uint32_t node, const char *key)
{
    for (size_t i = 0; i < d->node[node].status->key_count; i++)
        if (strcmp(d->node[node].status->keys[i], key) == 0)
            return true;
    return false;
}

static uint32_t accepted_by(const struct doctor *d, const char *key)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < d->nodes; i++)
        count += doctor_has_state(d, i) && accepts(d, i, key);
    return count;
}

/* Counts the ends of links that are proved by this key. */
static unsigned proved_by(const struct doctor *d, const char *key)
{
    unsigned count = 0;

    for (uint32_t node = 0; node < d->nodes; node++)
        for (size_t i = 0; doctor_has_state(d, node) && i < d->node[node].links->count; i++)
            count += strcmp(d->node[node].links->link[i]->key, key) == 0;
    return count;
}

struct keys {
    const char *first, *second; /* two keys that nodes accept; "" */
    uint32_t nodes, without_any, with_both, first_is_first;
};

static void note_key(struct keys *k, const char *key)
{
    if (key[0] == '\0' || strcmp(k->first, key) == 0 || strcmp(k->second, key) == 0)
        return;
    if (k->first[0] == '\0')
        k->first = key;
    else if (k->second[0] == '\0')
        k->second = key;
}

static struct keys count_keys(const struct doctor *d)
{
    struct keys k = {.first = "", .second = ""};

    for (size_t index = 0; index < 2; index++)
        for (uint32_t i = 0; i < d->nodes; i++)
            if (doctor_has_state(d, i))
                note_key(&k, key_of(d, i, index));
    for (uint32_t i = 0; i < d->nodes; i++) {
        if (!doctor_has_state(d, i))
            continue;
        k.nodes++;
        k.without_any += d->node[i].status->key_count == 0;
        k.with_both += k.second[0] != '\0' && accepts(d, i, k.first) && accepts(d, i, k.second);
        k.first_is_first += k.first[0] != '\0' && strcmp(key_of(d, i, 0), k.first) == 0;
    }
    return k;
}

/* Names the nodes that lack a key while others have two. */
static void find_behind(struct doctor *d, const struct keys *k)
{
    for (uint32_t i = 0; i < d->nodes; i++) {
        if (!doctor_has_state(d, i) || (accepts(d, i, k->first) && accepts(d, i, k->second)))
            continue;
        const char *missing = accepts(d, i, k->first) ? k->second : k->first;
        struct finding *f = doctor_find(d, SEVERITY_WARNING, "keys", i,
                                        "does not accept the key %s, which %u of %u nodes accept",
                                        missing, accepted_by(d, missing), k->nodes);
        f->why = "the key is being changed: a step must be finished on all nodes before the next "
                 "one, or links between old and new stay down";
        finding_mend(f, "copy the key to its second_key_file there, then: systemctl reload torusd");
    }
}

static void find_change(struct doctor *d, const struct keys *k)
{
    struct finding *f;

    if (k->with_both < k->nodes) {
        find_behind(d, k);
        return;
    }
    const unsigned by_first = proved_by(d, k->first), by_second = proved_by(d, k->second);
    if (k->first_is_first < k->nodes) {
        f = doctor_find(d, SEVERITY_WARNING, "keys", FINDING_NOBODY,
                        "all nodes accept the keys %s and %s; %u prefer the first one, %u the "
                        "second one (links: %u and %u ends)",
                        k->first, k->second, k->first_is_first, k->nodes - k->first_is_first,
                        by_first, by_second);
        f->why = "the second step of the change, the swap of the two files, is not finished";
        finding_mend(f, "swap key_file and second_key_file on the other nodes, then: systemctl "
                        "reload torusd");
        return;
    }
    f = doctor_find(d, SEVERITY_HINT, "keys", FINDING_NOBODY,
                    "all nodes have both keys, and prefer %s to %s (%u ends of links are proved by "
                    "the first one, %u by the second one): go on",
                    k->first, k->second, by_first, by_second);
    f->why = "a change of the key is under way";
    finding_mend(f,
                 "if %s is the new key, swap the two files on all nodes; if it is the old one, "
                 "remove second_key_file; then: systemctl reload torusd",
                 k->second);
}

static void judge_keys(struct doctor *d)
{
    const struct keys k = count_keys(d);
    struct finding *f;

    if (k.nodes == 0)
        return;
    if (k.without_any == k.nodes) {
        f = doctor_find(d, SEVERITY_HINT, "keys", FINDING_NOBODY, "no node has a cluster key");
        f->why = "any machine that reaches a port of a node can take part";
        finding_mend(f, "torusctl key generate FILE, copy it to all nodes, and set key_file");
        return;
    }
    for (uint32_t i = 0; i < d->nodes && k.without_any > 0; i++)
        if (doctor_has_state(d, i) && d->node[i].status->key_count == 0) {
            f = doctor_find(d, SEVERITY_ERROR, "keys", i,
                            "has no cluster key; other nodes have one");
            f->why = "nodes with a key refuse nodes without one";
            finding_mend(f, "copy the key file of another node there, and set key_file");
        }
    if (k.without_any == 0 && k.second[0] != '\0')
        find_change(d, &k);
}

static void check(struct doctor *d)
{
    for (uint32_t i = 0; i < d->nodes; i++)
        if (!doctor_has_state(d, i))
            doctor_unseen(d, "keys", i, NULL);
    judge_keys(d);
}

const struct check check_keys = {
    .all = check,
    .subject = {{"keys", "the cluster key is that of all nodes that have answered", false}}};
