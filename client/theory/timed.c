#include "client/theory/timed.h"

#include <math.h>
#include <stdlib.h>

#include "client/theory/event_queue.h"
#include "client/theory/worm.h"
#include "daemon/lib/base/grow.h"
#include "daemon/lib/schedule/work.h"

enum { NONE = UINT32_MAX };

#define LATEST (UINT64_MAX / 4)

/* A message that waits, with all that decides which one is next. None of it changes while the message waits. */
struct asking {
    uint64_t urgency; /* by the discipline of the queue: less is first */
    uint64_t asked;
    uint32_t entry, to; /* the entries of the channels before and behind */
    uint32_t message;
};

/* Messages that wait for a channel, as a heap: the next one is at[0]. A channel has one for each kind of message: its
 * path begins, or ends, with the channel, or not. Messages of one kind need the same port and slot. */
struct waiting {
    struct asking *at;
    size_t count, room;
};

enum { IS_FIRST = 1, IS_LAST = 2, KINDS = 4 };

struct channel {
    struct timed_channel given;
    uint32_t holder; /* message or NONE */
    uint32_t slots;  /* in use */
    uint64_t units;  /* of all messages */
    bool is_noted;   /* in the list of channels to look at */
    struct waiting waiting[KINDS];
};

struct message {
    struct timed_message given;
    size_t path; /* index of its first hop */
    uint32_t hops;
    uint32_t left;       /* channels of the path, without switches, that it has not taken */
    uint32_t needs;      /* messages that have not arrived */
    uint32_t hop;        /* that it waits for, or has taken last */
    uint32_t given_back; /* wormhole: hops with a time at which they are given back */
    uint32_t entry;
    bool waits;
    uint64_t asked; /* when it asked for hop; before: when the last message that it needs arrived */
    uint64_t tail;  /* when the last of its data has crossed hop */
};

struct need {
    uint32_t before, after;
};

struct node {
    uint32_t sends, receives; /* messages at the moment */
};

struct candidate {
    struct asking first;
    uint32_t channel;
};

struct timed {
    uint32_t nodes;
    struct channel *channel;
    size_t channels, channel_room;
    struct message *message;
    size_t messages, message_room;
    uint32_t *path;
    size_t hops, path_room;
    struct need *need;
    size_t needs, need_room;

    /* The run: */
    const struct timed_model *model;
    struct timed_report *report;
    timed_takes_fn *takes;
    void *context;
    struct node *node;
    uint32_t *follower; /* messages that need a message, by message */
    size_t *followers;  /* message -> its first follower */
    uint32_t *beside;  /* the channels that leave each node, then those that end at each, by node */
    size_t *besides;   /* node -> its first; nodes + node: the first that ends there */
    uint64_t *crossed; /* wormhole, by hop: when the head has crossed it */
    double *
        worm; /* wormhole, channels of different rates: four numbers for each hop of the longest path */
    struct event_queue queue;
    uint32_t *noted; /* channels to look at */
    size_t notes, note_room;
    struct candidate *candidate;
    size_t candidates, candidate_room;
    uint32_t group_end;  /* barrier: the first message of a later step */
    uint32_t group_left; /* barrier: messages before it that have not arrived */
    uint64_t moved;
    bool no_memory, too_late;
};

/* ---- Making -------------------------------------------------------------------------------------- */

struct timed *timed_new(uint32_t nodes)
{
    struct timed *t = calloc(1, sizeof *t);

    if (t != NULL)
        t->nodes = nodes;
    return t;
}

void timed_free(struct timed *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->channels; i++)
        for (unsigned kind = 0; kind < KINDS; kind++)
            free(t->channel[i].waiting[kind].at);
    free(t->channel);
    free(t->message);
    free(t->path);
    free(t->need);
    free(t->node);
    free(t->follower);
    free(t->followers);
    free(t->beside);
    free(t->besides);
    free(t->crossed);
    free(t->worm);
    event_queue_free(&t->queue);
    free(t->noted);
    free(t->candidate);
    free(t);
}

int timed_add_channel(struct timed *t, const struct timed_channel *c)
{
    if (GROW(t->channel, t->channels, t->channel_room) != 0)
        return -1;
    t->channel[t->channels++] = (struct channel){.given = *c, .holder = NONE};
    return 0;
}

int timed_add_message(struct timed *t, const struct timed_message *m)
{
    if (GROW(t->message, t->messages, t->message_room) != 0)
        return -1;
    t->message[t->messages++] = (struct message){.given = *m, .path = t->hops};
    return 0;
}

int timed_add_hop(struct timed *t, uint32_t channel)
{
    struct message *m = &t->message[t->messages - 1];

    if (GROW(t->path, t->hops, t->path_room) != 0)
        return -1;
    t->path[t->hops++] = channel;
    m->hops++;
    m->left += !t->channel[channel].given.is_switch;
    return 0;
}

int timed_add_need(struct timed *t, uint32_t before, uint32_t after)
{
    if (GROW(t->need, t->needs, t->need_room) != 0)
        return -1;
    t->need[t->needs++] = (struct need){before, after};
    t->message[after].needs++;
    return 0;
}

uint32_t timed_messages(const struct timed *t)
{
    return (uint32_t)t->messages;
}

struct timed_message *timed_message_at(struct timed *t, uint32_t message)
{
    return &t->message[message].given;
}

const struct timed_channel *timed_channel_at(const struct timed *t, uint32_t channel)
{
    return &t->channel[channel].given;
}

const uint32_t *timed_path(const struct timed *t, uint32_t message, uint32_t *hops)
{
    *hops = t->message[message].hops;
    return &t->path[t->message[message].path];
}

uint64_t timed_carried(const struct timed *t, uint32_t channel)
{
    return t->channel[channel].units;
}

static void add_event(struct timed *t, uint64_t at, uint32_t message, uint32_t hop,
                      enum event_kind kind)
{
    const struct event e = {message, hop, kind};

    t->too_late = t->too_late || at > LATEST;
    if (!t->no_memory && !t->too_late)
        t->no_memory = event_queue_add(&t->queue, at, e) != 0;
}

/* ---- Waiting ------------------------------------------------------------------------------------- */

static uint32_t hop_of(const struct timed *t, const struct message *m, uint32_t hop)
{
    return t->path[m->path + hop];
}

static uint64_t urgency_of(const struct timed *t, const struct message *m)
{
    switch (t->model->queue) {
    case TIMED_LONGEST:
        return UINT64_MAX - m->left - m->given.beyond;
    case TIMED_STEP:
        return m->given.step;
    default:
        return 0;
    }
}

static struct asking asking_of(const struct timed *t, uint32_t message)
{
    const struct message *m = &t->message[message];

    return (struct asking){urgency_of(t, m), m->asked, m->entry,
                           t->channel[hop_of(t, m, m->hop)].given.entry, message};
}

/* Whether a takes what it waits for before b. */
static bool is_before(const struct asking *a, const struct asking *b)
{
    if (a->urgency != b->urgency)
        return a->urgency < b->urgency;
    if (a->asked != b->asked)
        return a->asked < b->asked;
    if (a->entry != b->entry)
        return a->entry < b->entry;
    return a->to != b->to ? a->to < b->to : a->message < b->message;
}

static void note(struct timed *t, uint32_t channel)
{
    struct channel *c = &t->channel[channel];

    if (c->is_noted)
        return;
    if (GROW(t->noted, t->notes, t->note_room) != 0) {
        t->no_memory = true;
        return;
    }
    c->is_noted = true;
    t->noted[t->notes++] = channel;
}

static unsigned kind_of(const struct message *m, uint32_t hop)
{
    return (hop == 0 ? IS_FIRST : 0) | (hop + 1 == m->hops ? IS_LAST : 0);
}

static void ask(struct timed *t, uint32_t message, uint32_t hop, uint64_t now)
{
    struct message *m = &t->message[message];
    const uint32_t channel = hop_of(t, m, hop);
    struct waiting *w = &t->channel[channel].waiting[kind_of(m, hop)];

    m->hop = hop;
    m->waits = true;
    m->asked = now;
    if (hop > 0)
        m->entry = t->channel[hop_of(t, m, hop - 1)].given.entry;
    if (GROW(w->at, w->count, w->room) != 0) {
        t->no_memory = true;
        return;
    }
    const struct asking asking = asking_of(t, message);
    size_t i = w->count++;
    for (; i > 0 && is_before(&asking, &w->at[(i - 1) / 2]); i = (i - 1) / 2)
        w->at[i] = w->at[(i - 1) / 2];
    w->at[i] = asking;
    note(t, channel);
}

static void remove_first(struct waiting *w)
{
    const struct asking last = w->at[--w->count];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < w->count; i = child) {
        if (child + 1 < w->count && is_before(&w->at[child + 1], &w->at[child]))
            child++;
        if (!is_before(&w->at[child], &last))
            break;
        w->at[i] = w->at[child];
    }
    w->at[i] = last;
}

/* ---- What a message needs beside the channel ----------------------------------------------------- */

static bool takes_send(const struct timed *t, const struct channel *c, unsigned kind)
{
    return t->model->ports > 0 && !c->given.is_switch &&
           (t->model->switching == TIMED_STORE || (kind & IS_FIRST) != 0);
}

static bool takes_receive(const struct timed *t, const struct channel *c, unsigned kind)
{
    return t->model->ports > 0 && !c->given.is_switch &&
           (t->model->switching == TIMED_STORE || (kind & IS_LAST) != 0);
}

static bool takes_slot(const struct timed *t, const struct channel *c, unsigned kind)
{
    return t->model->slots > 0 && !c->given.is_switch && (kind & IS_LAST) == 0;
}

static bool is_free(const struct timed *t, const struct channel *c, unsigned kind)
{
    if (c->holder != NONE)
        return false;
    if (takes_send(t, c, kind) && t->node[c->given.from].sends >= t->model->ports)
        return false;
    if (takes_receive(t, c, kind) && t->node[c->given.to].receives >= t->model->ports)
        return false;
    return !takes_slot(t, c, kind) || c->slots < t->model->slots;
}

/* ---- Taking channels, and giving them back ------------------------------------------------------- */

static uint64_t data_time(const struct message *m, const struct channel *c)
{
    return m->given.units * c->given.unit;
}

/* Wormhole: the last hop that decides when hop `hop` is given back: up to it, the data do not fit into the buffers. */
static uint32_t decides(const struct timed *t, const struct message *m, uint32_t hop, uint64_t data)
{
    const uint64_t last = m->hops - 1, buffer = t->model->buffer;

    if (data == 0)
        return hop;
    if (buffer == 0 || (data - 1) / buffer >= last - hop)
        return (uint32_t)last;
    return hop + (uint32_t)((data - 1) / buffer);
}

/* As give_back_behind(), on channels of different rates. */
static void give_back_uneven(struct timed *t, uint32_t message, uint32_t hop)
{
    struct message *m = &t->message[message];
    const double unit = (double)t->model->unit;
    double *rate = t->worm, *ends = rate + hop + 1;
    const struct worm w = {.hops = hop + 1,
                           .crossed = &t->crossed[m->path],
                           .rate = rate,
                           .size = m->given.units * unit,
                           .buffer = (double)t->model->buffer,
                           .arrives = hop + 1 == m->hops,
                           .carried = ends + hop + 1,
                           .speed = ends + 2 * ((size_t)hop + 1)};

    for (uint32_t i = 0; i <= hop; i++)
        rate[i] = unit / (double)t->channel[hop_of(t, m, i)].given.unit;
    worm_follow(&w, ends);
    for (; m->given_back <= hop && ends[m->given_back] < INFINITY; m->given_back++)
        add_event(t, w.crossed[0] + (uint64_t)llround(ends[m->given_back]), message, m->given_back,
                  EVENT_GIVES_BACK);
}

/* Wormhole: the head of a message has taken a hop. Gives back those for which that decides when. */
static void give_back_behind(struct timed *t, uint32_t message, uint32_t hop)
{
    struct message *m = &t->message[message];

    for (; m->given_back <= hop; m->given_back++) {
        const uint32_t i = m->given_back;
        const uint64_t data = data_time(m, &t->channel[hop_of(t, m, i)]);
        const uint32_t end = decides(t, m, i, data);
        uint64_t at = 0;
        if (end > hop)
            return;
        for (uint32_t k = i; k <= end; k++) {
            uint64_t left = t->crossed[m->path + k] + data - (k - i) * t->model->buffer;
            at = left > at ? left : at;
        }
        add_event(t, at, message, i, EVENT_GIVES_BACK);
    }
}

static void take(struct timed *t, uint32_t message, uint64_t now)
{
    struct message *m = &t->message[message];
    const uint32_t hop = m->hop, channel = hop_of(t, m, hop);
    const unsigned kind = kind_of(m, hop);
    struct channel *c = &t->channel[channel];
    const uint64_t startup = hop == 0 && m->given.pays_startup ? t->model->startup : 0;
    const uint64_t crossed = now + startup + c->given.switching, end = crossed + data_time(m, c);

    m->waits = false;
    c->holder = message;
    if (takes_send(t, c, kind))
        t->node[c->given.from].sends++;
    if (takes_receive(t, c, kind))
        t->node[c->given.to].receives++;
    c->slots += takes_slot(t, c, kind);
    m->left -= !c->given.is_switch;
    if (!c->given.is_switch && (c->units += m->given.units) > t->report->busiest)
        t->report->busiest = c->units;
    t->report->waited += now > m->asked;
    if (t->takes != NULL)
        t->takes(t->context, message, channel, now);
    m->tail = end > m->tail ? end : m->tail;
    if (t->model->switching != TIMED_STORE && (kind & IS_LAST) == 0)
        add_event(t, crossed, message, hop + 1, EVENT_ASKS);
    if (t->model->switching != TIMED_WORMHOLE) {
        add_event(t, m->tail, message, hop, EVENT_GIVES_BACK);
        return;
    }
    t->crossed[m->path + hop] = crossed;
    if (t->worm != NULL)
        give_back_uneven(t, message, hop);
    else
        give_back_behind(t, message, hop);
}

/* Looks at the channels again that leave a node, or end there. */
static void note_beside(struct timed *t, size_t place)
{
    for (size_t i = t->besides[place]; i < t->besides[place + 1]; i++)
        note(t, t->beside[i]);
}

static void become_ready(struct timed *t, uint32_t message, uint64_t now);

static void start_group(struct timed *t, uint64_t now)
{
    uint32_t first = t->group_end;

    if (first == t->messages)
        return;
    while (t->group_end < t->messages &&
           t->message[t->group_end].given.step == t->message[first].given.step)
        t->group_end++;
    t->group_left = t->group_end - first;
    for (uint32_t i = first; i < t->group_end; i++)
        if (t->message[i].needs == 0)
            become_ready(t, i, now);
}

static void arrive(struct timed *t, uint32_t message, uint64_t now)
{
    const struct message *m = &t->message[message];
    uint32_t last = m->hops;
    uint32_t entry = 0;

    while (last > 0 && t->channel[hop_of(t, m, last - 1)].given.is_switch)
        last--;
    if (last > 0)
        entry = t->channel[hop_of(t, m, last - 1)].given.entry;
    t->report->arrived++;
    for (size_t i = t->followers[message]; i < t->followers[message + 1]; i++) {
        struct message *f = &t->message[t->follower[i]];
        f->entry = f->asked < now || f->entry < entry ? entry : f->entry;
        f->asked = now;
        if (--f->needs == 0 && t->follower[i] < t->group_end)
            become_ready(t, t->follower[i], now);
    }
    if (t->model->barrier && --t->group_left == 0)
        start_group(t, now);
}

static void become_ready(struct timed *t, uint32_t message, uint64_t now)
{
    const struct message *m = &t->message[message];

    if (m->given.earliest > now)
        add_event(t, m->given.earliest, message, 0, EVENT_STARTS);
    else if (m->hops > 0)
        ask(t, message, 0, now);
    else /* not at once: a barrier's group is complete first */
        add_event(t, now, message, 0, EVENT_STARTS);
}

static void give_back(struct timed *t, uint32_t message, uint32_t hop, uint64_t now)
{
    struct message *m = &t->message[message];
    const uint32_t channel = hop_of(t, m, hop);
    const unsigned kind = kind_of(m, hop);
    struct channel *c = &t->channel[channel];

    watch_count(&t->moved, t->hops);
    c->holder = NONE;
    note(t, channel);
    if (takes_send(t, c, kind)) {
        t->node[c->given.from].sends--;
        note_beside(t, c->given.from);
    }
    if (takes_receive(t, c, kind)) {
        t->node[c->given.to].receives--;
        note_beside(t, (size_t)t->nodes + c->given.to);
    }
    if (hop > 0) {
        struct channel *before = &t->channel[hop_of(t, m, hop - 1)];
        if (takes_slot(t, before, kind_of(m, hop - 1))) {
            before->slots--;
            note(t, hop_of(t, m, hop - 1));
        }
    }
    if (!c->given.is_switch)
        t->report->time = now;
    if ((kind & IS_LAST) != 0)
        arrive(t, message, now);
    else if (t->model->switching == TIMED_STORE)
        ask(t, message, hop + 1, now);
}

static void handle(struct timed *t, struct event e, uint64_t now)
{
    switch (e.kind) {
    case EVENT_STARTS:
        if (t->message[e.message].hops > 0)
            ask(t, e.message, 0, now);
        else
            arrive(t, e.message, now);
        break;
    case EVENT_ASKS:
        ask(t, e.message, e.hop, now);
        break;
    case EVENT_GIVES_BACK:
        give_back(t, e.message, e.hop, now);
        break;
    }
}

/* ---- In order ------------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    const struct asking *x = &((const struct candidate *)a)->first,
                        *y = &((const struct candidate *)b)->first;

    return x->message == y->message ? 0 : is_before(x, y) ? -1 : 1;
}

/* The message that keeps another one from the channel that it waits for, or NONE. */
static uint32_t find_behind(const struct timed *t, uint32_t message)
{
    const struct message *m = &t->message[message];
    const unsigned kind = kind_of(m, m->hop);
    const uint32_t wanted = hop_of(t, m, m->hop);
    const struct channel *c = &t->channel[wanted];

    if (c->holder != NONE)
        return c->holder;
    const bool no_send = takes_send(t, c, kind) && t->node[c->given.from].sends >= t->model->ports;
    const bool no_receive =
        takes_receive(t, c, kind) && t->node[c->given.to].receives >= t->model->ports;
    for (size_t i = 0; (no_send || no_receive) && i < t->channels; i++) {
        const struct channel *other = &t->channel[i];
        if (other->holder == NONE || other->given.is_switch)
            continue;
        const struct message *holder = &t->message[other->holder];
        const bool all = t->model->switching == TIMED_STORE;
        if ((no_send && other->given.from == c->given.from && (all || hop_of(t, holder, 0) == i)) ||
            (no_receive && other->given.to == c->given.to &&
             (all || hop_of(t, holder, holder->hops - 1) == i)))
            return other->holder;
    }
    for (uint32_t i = 0; i < t->messages; i++) /* the slots are taken */
        if (t->message[i].hop > 0 && hop_of(t, &t->message[i], t->message[i].hop - 1) == wanted &&
            (t->message[i].waits ||
             t->channel[hop_of(t, &t->message[i], t->message[i].hop)].holder == i))
            return i;
    return NONE;
}

static struct timed_wait wait_of(const struct timed *t, uint32_t message)
{
    const struct message *m = &t->message[message];

    return (struct timed_wait){m->asked, message, hop_of(t, m, m->hop), find_behind(t, message)};
}

/* Takes note of the first message that has to wait, of those that wait for channels from `noted`. */
static void note_first_wait(struct timed *t, const uint32_t *noted, size_t notes)
{
    const struct asking *first = NULL;

    for (size_t i = 0; i < notes; i++)
        for (unsigned kind = 0; kind < KINDS; kind++) {
            const struct waiting *w = &t->channel[noted[i]].waiting[kind];
            if (w->count > 0 && (first == NULL || is_before(&w->at[0], first)))
                first = &w->at[0];
        }
    if (first != NULL)
        t->report->first = wait_of(t, first->message);
}

/* Lets messages take what is free, at one time. */
static void take_in_order(struct timed *t, uint64_t now)
{
    t->candidates = 0;
    for (size_t i = 0; i < t->notes; i++) {
        struct channel *c = &t->channel[t->noted[i]];
        c->is_noted = false;
        for (unsigned kind = 0; kind < KINDS; kind++) {
            if (c->waiting[kind].count == 0 || !is_free(t, c, kind))
                continue;
            if (GROW(t->candidate, t->candidates, t->candidate_room) != 0) {
                t->no_memory = true;
                return;
            }
            t->candidate[t->candidates++] = (struct candidate){c->waiting[kind].at[0], t->noted[i]};
        }
    }
    const size_t notes = t->notes;
    t->notes = 0;
    if (t->candidates > 1)
        qsort(t->candidate, t->candidates, sizeof *t->candidate, compare);
    for (size_t i = 0; i < t->candidates; i++) {
        const uint32_t message = t->candidate[i].first.message;
        struct channel *c = &t->channel[t->candidate[i].channel];
        const unsigned kind = kind_of(&t->message[message], t->message[message].hop);
        if (!is_free(t, c, kind))
            continue;
        remove_first(&c->waiting[kind]);
        take(t, message, now);
    }
    if (t->report->first.message == NONE)
        note_first_wait(t, t->noted, notes);
}

/* ---- The run ------------------------------------------------------------------------------------- */

/* Sorts by a key: afterwards, what has key k is list[first[k]] to list[first[k + 1] - 1]. */
static int make_followers(struct timed *t)
{
    t->followers = calloc(t->messages + 2, sizeof *t->followers);
    t->follower = calloc(t->needs + 1, sizeof *t->follower);
    if (t->followers == NULL || t->follower == NULL)
        return -1;
    for (size_t i = 0; i < t->needs; i++)
        t->followers[t->need[i].before + 2]++;
    for (size_t i = 2; i < t->messages + 2; i++)
        t->followers[i] += t->followers[i - 1];
    for (size_t i = 0; i < t->needs; i++)
        t->follower[t->followers[t->need[i].before + 1]++] = t->need[i].after;
    return 0;
}

static int make_beside(struct timed *t)
{
    const size_t places = 2 * (size_t)t->nodes;

    t->besides = calloc(places + 2, sizeof *t->besides);
    t->beside = calloc(2 * t->channels + 1, sizeof *t->beside);
    if (t->besides == NULL || t->beside == NULL)
        return -1;
    for (size_t i = 0; i < t->channels; i++) {
        t->besides[t->channel[i].given.from + 2]++;
        t->besides[(size_t)t->nodes + t->channel[i].given.to + 2]++;
    }
    for (size_t i = 2; i < places + 2; i++)
        t->besides[i] += t->besides[i - 1];
    for (uint32_t i = 0; i < t->channels; i++) {
        t->beside[t->besides[t->channel[i].given.from + 1]++] = i;
        t->beside[t->besides[(size_t)t->nodes + t->channel[i].given.to + 1]++] = i;
    }
    return 0;
}

/* Wormhole: makes room to follow worms if channels have different rates. Returns 0, or -1 without memory. */
static int make_worms(struct timed *t)
{
    bool uneven = false;
    size_t longest = 0;

    t->crossed = calloc(t->hops + 1, sizeof *t->crossed);
    for (size_t i = 0; i < t->channels; i++)
        uneven = uneven || t->channel[i].given.unit != t->model->unit;
    for (size_t i = 0; i < t->messages && uneven; i++)
        longest = t->message[i].hops > longest ? t->message[i].hops : longest;
    if (uneven)
        t->worm = calloc(4 * (longest + 1), sizeof *t->worm);
    return t->crossed == NULL || (uneven && t->worm == NULL) ? -1 : 0;
}

/* Whether no single message takes too long to be counted. */
static bool times_fit(const struct timed *t)
{
    uint64_t unit = 0, fixed = t->model->startup;
    uint32_t units = 0;

    for (size_t i = 0; i < t->channels; i++) {
        unit = t->channel[i].given.unit > unit ? t->channel[i].given.unit : unit;
        fixed = t->channel[i].given.switching > fixed ? t->channel[i].given.switching : fixed;
    }
    for (size_t i = 0; i < t->messages; i++)
        units = t->message[i].given.units > units ? t->message[i].given.units : units;
    return fixed < LATEST && (double)units * (double)unit < (double)LATEST;
}

/* Follows who waits for whom until somebody comes again. */
static void find_circle(struct timed *t)
{
    uint32_t at = 0;

    while (at < t->messages && !t->message[at].waits)
        at++;
    if (at == t->messages)
        return;
    for (uint32_t fast = at; at != NONE && fast != NONE;) { /* into the circle */
        at = find_behind(t, at);
        fast = find_behind(t, fast);
        fast = fast != NONE ? find_behind(t, fast) : NONE;
        if (at == fast)
            break;
    }
    const uint32_t first = at;
    for (; at != NONE && (at != first || t->report->circle == 0); t->report->circle++) {
        if (t->report->circle < TIMED_CIRCLE_MOST)
            t->report->wait[t->report->circle] = wait_of(t, at);
        at = find_behind(t, at);
    }
}

static void run(struct timed *t)
{
    if (t->model->barrier) {
        start_group(t, 0);
    } else {
        t->group_end = (uint32_t)t->messages;
        for (uint32_t i = 0; i < t->messages; i++)
            if (t->message[i].needs == 0)
                become_ready(t, i, 0);
    }
    uint64_t now = 0;
    while (!t->no_memory && !t->too_late) {
        while (event_queue_next(&t->queue) == now)
            handle(t, event_queue_take(&t->queue), now);
        if (t->notes > 0)
            take_in_order(t, now);
        else if (event_queue_next(&t->queue) != UINT64_MAX)
            now = event_queue_next(&t->queue);
        else
            break;
    }
    if (t->report->arrived < t->messages)
        find_circle(t);
}

int timed_run(struct timed *t, const struct timed_model *m, timed_takes_fn *takes, void *context,
              struct timed_report *r, struct error *e)
{
    *r = (struct timed_report){.first = {.message = NONE}};
    t->model = m;
    t->report = r;
    t->takes = takes;
    t->context = context;
    t->node = calloc((size_t)t->nodes + 1, sizeof *t->node);
    t->no_memory = t->node == NULL || (m->switching == TIMED_WORMHOLE && make_worms(t) != 0) ||
                   make_followers(t) != 0 || make_beside(t) != 0;
    t->too_late = !times_fit(t);
    if (!t->no_memory && !t->too_late)
        run(t);
    if (t->no_memory)
        return error_set(e, ERROR_MEMORY, "out of memory to simulate %zu messages", t->messages);
    if (t->too_late)
        return error_set(e, ERROR_REFUSED, "the simulated time is too long");
    return 0;
}
