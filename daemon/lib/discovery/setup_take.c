#include "daemon/lib/discovery/setup_take.h"

#include <stdlib.h>

#include "daemon/lib/discovery/blob.h"
#include "daemon/lib/discovery/letter.h"
#include "proto/borrowed.h"

#define MISSING_PAUSE (300 * MILLISECONDS)
#define SENDER_WAIT (30 * SECONDS) /* for any word of the sender */
#define SENDER_PAUSE (3 * SECONDS) /* longer than between two questions of a sender */

enum incoming_state {
    INCOMING_ARRIVES, /* chunks are missing */
    INCOMING_WAITS,   /* for another setup to be applied */
    INCOMING_RUNS,    /* io.apply() has it */
    INCOMING_ANSWERS, /* the sender fetches the result */
};

struct incoming_setup {
    uint8_t id[SETUP_ID_SIZE];
    struct host_id from;
    unsigned interface; /* over which it comes */
    bool proved;        /* its sender has proved the cluster key */
    enum incoming_state state;
    struct blob sealed;
    uint8_t *result; /* sealed, with INCOMING_ANSWERS */
    size_t result_size;
    uint64_t heard_at, missing_due;
};

static void free_setup(struct discovery *d, unsigned place)
{
    struct incoming_setup *s = d->setups.in[place];

    d->setups.in[place] = NULL;
    if (d->setups.given == s)
        d->setups.given = NULL;
    blob_free(&s->sealed);
    free(s->result);
    free(s);
}

void setup_take_free(struct discovery *d)
{
    for (unsigned i = 0; i < SETUPS_IN_MOST; i++)
        if (d->setups.in[i] != NULL)
            free_setup(d, i);
}

/* --- answers --- */

static void refuse(struct discovery *d, const struct host_id *to, const uint8_t *id,
                   const char *text)
{
    Discovery__Letter letter;
    Discovery__Refusal refusal = DISCOVERY__REFUSAL__INIT;

    letter_begin(d, &letter, to, id);
    refusal.text = borrowed_text(text);
    letter.kind_case = DISCOVERY__LETTER__KIND_REFUSAL;
    letter.refusal = &refusal;
    letter_send(d, &letter);
}

static void challenge(struct discovery *d, const struct incoming_setup *s)
{
    Discovery__Letter letter;
    Discovery__Challenge message = DISCOVERY__CHALLENGE__INIT;

    letter_begin(d, &letter, &s->from, s->id);
    message.nonce = borrowed(d->setups.nonce, NONCE_SIZE);
    message.running = s->state != INCOMING_ARRIVES;
    letter.kind_case = DISCOVERY__LETTER__KIND_CHALLENGE;
    letter.challenge = &message;
    letter_send(d, &letter);
}

static unsigned place_of(const struct discovery *d, const struct incoming_setup *s)
{
    unsigned i = 0;

    while (d->setups.in[i] != s)
        i++;
    return i;
}

void setup_take_ended(struct discovery *d, const struct setup_end *end)
{
    struct incoming_setup *s = d->setups.given;

    d->setups.given = NULL;
    if (end->e.code == ERROR_NONE)
        s->result = malloc(end->size + 1);
    if (s->result == NULL) {
        refuse(d, &s->from, s->id, end->e.code != ERROR_NONE ? end->e.text : "out of memory");
        free_setup(d, place_of(d, s));
        return;
    }
    memcpy(s->result, end->sealed, end->size);
    s->result_size = end->size;
    s->state = INCOMING_ANSWERS;
    s->heard_at = discovery_now(d);
    letter_send_first(d, &s->from, s->id, s->result, s->result_size);
}

/* --- letters --- */

/* Finds the place of a setup; SETUPS_IN_MOST: it is not known. */
static unsigned find(const struct discovery *d, const struct host_id *from, const uint8_t *id)
{
    unsigned i = 0;

    while (i < SETUPS_IN_MOST &&
           (d->setups.in[i] == NULL || !host_id_is(&d->setups.in[i]->from, from) ||
            memcmp(d->setups.in[i]->id, id, SETUP_ID_SIZE) != 0))
        i++;
    return i;
}

static bool may_be_forgotten(const struct incoming_setup *s)
{
    return s->state == INCOMING_ARRIVES || s->state == INCOMING_ANSWERS;
}

/* Whether the setup gives way to one that is announced: a host that starts another setup has given up those that it is
 * silent about. */
static bool is_given_up(const struct discovery *d, const struct incoming_setup *s,
                        const struct setup_letter *l)
{
    return may_be_forgotten(s) && host_id_is(&s->from, l->from) &&
           discovery_now(d) >= s->heard_at + SENDER_PAUSE;
}

/* Finds a place. Strangers have half of the places at most, by whatever names, over one interface; and who has proved
 * the cluster key gets the place of one who has not. */
static unsigned find_room(struct discovery *d, const struct setup_letter *l)
{
    unsigned room = SETUPS_IN_MOST, held = 0, stranger = SETUPS_IN_MOST;

    for (unsigned i = 0; i < SETUPS_IN_MOST; i++) {
        const struct incoming_setup *s = d->setups.in[i];
        if (s != NULL && is_given_up(d, s, l))
            free_setup(d, i);
        s = d->setups.in[i];
        if (s == NULL)
            room = i;
        else if (host_id_is(&s->from, l->from) || (!l->proved && s->interface == l->interface))
            held++;
        if (s != NULL && !s->proved && may_be_forgotten(s))
            stranger = i;
    }
    if (held >= SETUPS_IN_MOST / 2)
        return SETUPS_IN_MOST;
    if (room == SETUPS_IN_MOST && l->proved && stranger < SETUPS_IN_MOST) {
        free_setup(d, stranger);
        room = stranger;
    }
    return room;
}

/* Makes a record of a setup that is announced. */
static void begin(struct discovery *d, const struct setup_letter *l)
{
    const struct host_id *from = l->from;
    const uint8_t *id = l->letter->setup.data;
    struct incoming_setup *s;
    unsigned place;

    if (!d->own.accepts_setups) {
        refuse(d, from, id, "it accepts no setups");
        return;
    }
    place = find_room(d, l);
    s = place < SETUPS_IN_MOST ? calloc(1, sizeof *s) : NULL;
    if (s == NULL) {
        refuse(d, from, id, "it receives too many setups at this moment: try again");
        return;
    }
    memcpy(s->id, id, SETUP_ID_SIZE);
    s->from = *from;
    s->interface = l->interface;
    s->proved = l->proved;
    s->heard_at = discovery_now(d);
    d->setups.in[place] = s;
    challenge(d, s);
}

static void take_ask(struct discovery *d, struct incoming_setup *s)
{
    if (s->state != INCOMING_ANSWERS)
        challenge(d, s);
    else if (s->result != NULL)
        letter_send_first(d, &s->from, s->id, s->result, s->result_size);
}

void setup_take_letter(struct discovery *d, const struct setup_letter *l)
{
    const struct host_id *from = l->from;
    const Discovery__Letter *letter = l->letter;
    const uint8_t *id = letter->setup.data;
    unsigned place = find(d, from, id);
    struct incoming_setup *s;

    if (place == SETUPS_IN_MOST) {
        if (letter->kind_case == DISCOVERY__LETTER__KIND_ASK)
            begin(d, l);
        return;
    }
    s = d->setups.in[place];
    s->heard_at = discovery_now(d);
    if (letter->kind_case == DISCOVERY__LETTER__KIND_ASK) {
        take_ask(d, s);
    } else if (letter->kind_case == DISCOVERY__LETTER__KIND_CHUNK && s->state == INCOMING_ARRIVES) {
        s->missing_due = discovery_now(d) + MISSING_PAUSE;
        if (letter_take_chunk(d, from, s->id, &s->sealed, BLOB_MOST, letter->chunk))
            s->state = INCOMING_WAITS;
    } else if (letter->kind_case == DISCOVERY__LETTER__KIND_MISSING && s->result != NULL) {
        letter_send_chunks(d, from, s->id, s->result, s->result_size, letter->missing);
    } else if (letter->kind_case == DISCOVERY__LETTER__KIND_DONE && s->state == INCOMING_ANSWERS) {
        free_setup(d, place);
    }
}

/* --- time --- */

/* Gives the setup to what applies it, unless that has another one. */
static void start(struct discovery *d, struct incoming_setup *s)
{
    if (d->setups.busy)
        return;
    s->state = INCOMING_RUNS;
    d->setups.busy = true;
    d->setups.given = s;
    d->io.apply(d->io.context, s->id, &s->from, s->sealed.bytes, s->sealed.size);
    blob_free(&s->sealed);
}

uint64_t setup_take_tick(struct discovery *d)
{
    const uint64_t now = discovery_now(d);
    uint64_t next = UINT64_MAX;

    for (unsigned i = 0; i < SETUPS_IN_MOST; i++) {
        struct incoming_setup *s = d->setups.in[i];
        if (s == NULL)
            continue;
        if (s->state == INCOMING_WAITS)
            start(d, s);
        if (s->state == INCOMING_RUNS || s->state == INCOMING_WAITS)
            continue; /* the end of one starts the next */
        if (now >= s->heard_at + SENDER_WAIT) {
            free_setup(d, i);
            continue;
        }
        if (s->state == INCOMING_ARRIVES && s->sealed.bytes != NULL && now >= s->missing_due) {
            letter_send_missing(d, &s->from, s->id, &s->sealed);
            s->missing_due = now + MISSING_PAUSE;
        }
        if (s->state == INCOMING_ARRIVES && s->sealed.bytes != NULL && s->missing_due < next)
            next = s->missing_due;
        if (s->heard_at + SENDER_WAIT < next)
            next = s->heard_at + SENDER_WAIT;
    }
    return next;
}
