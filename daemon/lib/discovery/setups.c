#include <stdlib.h>

#include "daemon/lib/discovery/internal.h"
#include "proto/borrowed.h"
#include "proto/text.h"

/* --- the side that sends a setup --- */

#define ASK_PAUSE (400 * MILLISECONDS)
#define ANSWER_WAIT (20 * SECONDS) /* for any word of the host */
#define DONE_TIMES 3               /* setup messages may get lost */

struct outgoing_setup {
    uint8_t id[SETUP_ID_SIZE];
    struct host_id host;
    char name[REPORT_NAME_SIZE]; /* of the host, for errors */
    uint8_t nonce[NONCE_SIZE];   /* of the challenge */
    bool challenged;
    uint8_t *sealed; /* for that challenge; NULL: the user seals it */
    size_t sealed_size;
    struct sealed_message result;
    uint64_t ask_due, heard_at;
    struct setup_user user;
};

static void free_outgoing(struct outgoing_setup *s)
{
    free(s->sealed);
    sealed_message_free(&s->result);
    free(s);
}

static void forget(struct discovery *d, struct outgoing_setup *s)
{
    for (unsigned i = 0; i < SETUPS_OUT_MOST; i++)
        if (d->setups.out[i] == s)
            d->setups.out[i] = NULL;
}

static void end(struct discovery *d, struct outgoing_setup *s, const struct setup_end *how)
{
    forget(d, s);
    s->user.ended(s->user.context, how);
    free_outgoing(s);
}

static void fail(struct discovery *d, struct outgoing_setup *s, enum error_code code,
                 const char *text)
{
    struct setup_end failed = {0};

    (void)error_set(&failed.e, code, "host %s: %s", s->name, text);
    end(d, s, &failed);
}

void discovery_cancel_setup(struct discovery *d, struct outgoing_setup *setup)
{
    forget(d, setup);
    free_outgoing(setup);
}

void setup_send_free(struct discovery *d)
{
    for (unsigned i = 0; i < SETUPS_OUT_MOST; i++)
        if (d->setups.out[i] != NULL)
            discovery_cancel_setup(d, d->setups.out[i]);
}

/* Checks that a setup can be sent to the host. The host itself says which key it has now, because its report may be
 * older while keys change. Returns its entry, or NULL with *e. */
static const struct host_entry *check_host(struct discovery *d, const struct host_id *host,
                                           struct error *e)
{
    const struct host_entry *h;

    (void)database_refresh(&d->database, discovery_now(d));
    h = database_find(&d->database, host);
    if (h == NULL || !h->reachable)
        (void)error_set(e, ERROR_LINK, "%s%s is not reachable over the cables",
                        h != NULL ? "host " : "the host", h != NULL ? h->report->name : "");
    else if (h->distance == 0)
        (void)error_set(e, ERROR_USAGE, "this host applies its own setups by torusd-setup");
    else if (!h->report->accepts_setups)
        (void)error_set(e, ERROR_REFUSED,
                        "host %s accepts no setups: start torusd-setup there, and "
                        "torusd-discover with --setups",
                        h->report->name);
    else
        return h;
    return NULL;
}

struct outgoing_setup *discovery_send_setup(struct discovery *d, const struct host_id *host,
                                            const struct setup_user *user, struct error *e)
{
    const struct host_entry *h = check_host(d, host, e);
    struct outgoing_setup *s;
    unsigned place = 0;

    if (h == NULL)
        return NULL;
    while (place < SETUPS_OUT_MOST && d->setups.out[place] != NULL)
        place++;
    if (place == SETUPS_OUT_MOST) {
        (void)error_set(e, ERROR_BUSY, "this host sends %u setups already: try again later",
                        SETUPS_OUT_MOST);
        return NULL;
    }
    s = calloc(1, sizeof *s);
    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for the setup");
        return NULL;
    }
    s->host = h->report->host;
    (void)strcpy(s->name, h->report->name);
    s->heard_at = discovery_now(d);
    s->user = *user;
    d->io.random(d->io.context, s->id, sizeof s->id);
    d->setups.out[place] = s;
    return s;
}

void discovery_send_sealed(struct discovery *d, struct outgoing_setup *s, const uint8_t *bytes,
                           size_t size)
{
    if (!s->challenged || s->sealed != NULL || size == 0 || size > SEALED_MOST) {
        fail(d, s, ERROR_USAGE, "the sealed setup was not asked for, or is too large");
        return;
    }
    s->sealed = malloc(size);
    if (s->sealed == NULL) {
        fail(d, s, ERROR_MEMORY, "out of memory for the setup");
        return;
    }
    memcpy(s->sealed, bytes, size);
    s->sealed_size = size;
    s->heard_at = discovery_now(d);
    setup_message_send_first(d, &s->host, s->id, s->sealed, s->sealed_size);
}

static void ask(struct discovery *d, struct outgoing_setup *s)
{
    Discovery__SetupMessage setup_message;
    Discovery__Ask message = DISCOVERY__ASK__INIT;

    setup_message_begin(d, &setup_message, &s->host, s->id);
    setup_message.kind_case = DISCOVERY__SETUP_MESSAGE__KIND_ASK;
    setup_message.ask = &message;
    setup_message_send(d, &setup_message);
    s->ask_due = discovery_now(d) + ASK_PAUSE;
}

static void say_done(struct discovery *d, const struct outgoing_setup *s)
{
    Discovery__SetupMessage setup_message;
    Discovery__Done message = DISCOVERY__DONE__INIT;

    setup_message_begin(d, &setup_message, &s->host, s->id);
    setup_message.kind_case = DISCOVERY__SETUP_MESSAGE__KIND_DONE;
    setup_message.done = &message;
    for (int i = 0; i < DONE_TIMES; i++)
        setup_message_send(d, &setup_message);
}

/* Lets the user seal the setup for a challenge. A challenge is repeated until the sealed setup has arrived. */
static void take_challenge(struct discovery *d, struct outgoing_setup *s,
                           const Discovery__Challenge *message)
{
    const struct host_entry *h = database_find(&d->database, &s->host);
    const struct setup_challenge challenge = {s->id, &d->own.host, h != NULL ? h->key : NULL,
                                              s->nonce};

    if (message->nonce.len != NONCE_SIZE || message->running || h == NULL)
        return;
    if (s->challenged) {
        if (memcmp(s->nonce, message->nonce.data, NONCE_SIZE) != 0)
            fail(d, s, ERROR_BUSY, "its torusd-setup has started again meanwhile: try again");
        return;
    }
    memcpy(s->nonce, message->nonce.data, NONCE_SIZE);
    s->challenged = true;
    s->user.challenged(s->user.context, &challenge);
}

static void take_result_chunk(struct discovery *d, struct outgoing_setup *s,
                              const Discovery__Chunk *chunk)
{
    if (s->sealed == NULL || !setup_message_take_chunk(d, &s->host, s->id, &s->result, chunk))
        return;
    say_done(d, s);
    end(d, s, &(struct setup_end){.sealed = s->result.bytes, .size = s->result.size});
}

static struct outgoing_setup *find_outgoing(const struct discovery *d, const struct host_id *from,
                                            const Discovery__SetupMessage *setup_message)
{
    for (unsigned i = 0; i < SETUPS_OUT_MOST; i++) {
        struct outgoing_setup *s = d->setups.out[i];
        if (s != NULL && host_id_is(&s->host, from) &&
            memcmp(s->id, setup_message->setup.data, SETUP_ID_SIZE) == 0)
            return s;
    }
    return NULL;
}

bool setup_send_take(struct discovery *d, const struct host_id *from,
                     const Discovery__SetupMessage *setup_message)
{
    struct outgoing_setup *s = find_outgoing(d, from, setup_message);
    char text[256];

    if (s == NULL)
        return false;
    s->heard_at = discovery_now(d);
    if (setup_message->kind_case == DISCOVERY__SETUP_MESSAGE__KIND_CHALLENGE)
        take_challenge(d, s, setup_message->challenge);
    else if (setup_message->kind_case == DISCOVERY__SETUP_MESSAGE__KIND_MISSING &&
             s->sealed != NULL)
        setup_message_send_chunks(d, from, s->id, s->sealed, s->sealed_size,
                                  setup_message->missing);
    else if (setup_message->kind_case == DISCOVERY__SETUP_MESSAGE__KIND_CHUNK)
        take_result_chunk(d, s, setup_message->chunk);
    else if (setup_message->kind_case == DISCOVERY__SETUP_MESSAGE__KIND_REFUSAL)
        fail(d, s, ERROR_REFUSED, text_printable(text, sizeof text, setup_message->refusal->text));
    return true;
}

uint64_t setup_send_tick(struct discovery *d)
{
    const uint64_t now = discovery_now(d);
    uint64_t next = UINT64_MAX;

    for (unsigned i = 0; i < SETUPS_OUT_MOST; i++) {
        struct outgoing_setup *s = d->setups.out[i];
        if (s == NULL)
            continue;
        if (now >= s->heard_at + ANSWER_WAIT) {
            fail(d, s, ERROR_TIMEOUT, "no answer for 20 s");
            continue;
        }
        if (now >= s->ask_due) {
            if (s->result.bytes != NULL)
                setup_message_send_missing(d, &s->host, s->id, &s->result);
            ask(d, s);
        }
        next = s->ask_due < next ? s->ask_due : next;
    }
    return next;
}

/* --- the side that receives a setup --- */

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
    struct sealed_message sealed;
    uint8_t *result; /* sealed, with INCOMING_ANSWERS */
    size_t result_size;
    uint64_t heard_at, missing_due;
};

static void free_incoming(struct discovery *d, unsigned place)
{
    struct incoming_setup *s = d->setups.in[place];

    d->setups.in[place] = NULL;
    if (d->setups.given == s)
        d->setups.given = NULL;
    sealed_message_free(&s->sealed);
    free(s->result);
    free(s);
}

void setup_take_free(struct discovery *d)
{
    for (unsigned i = 0; i < SETUPS_IN_MOST; i++)
        if (d->setups.in[i] != NULL)
            free_incoming(d, i);
}

static void refuse(struct discovery *d, const struct host_id *to, const uint8_t *id,
                   const char *text)
{
    Discovery__SetupMessage setup_message;
    Discovery__Refusal refusal = DISCOVERY__REFUSAL__INIT;

    setup_message_begin(d, &setup_message, to, id);
    refusal.text = borrowed_text(text);
    setup_message.kind_case = DISCOVERY__SETUP_MESSAGE__KIND_REFUSAL;
    setup_message.refusal = &refusal;
    setup_message_send(d, &setup_message);
}

static void challenge(struct discovery *d, const struct incoming_setup *s)
{
    Discovery__SetupMessage setup_message;
    Discovery__Challenge message = DISCOVERY__CHALLENGE__INIT;

    setup_message_begin(d, &setup_message, &s->from, s->id);
    message.nonce = borrowed(d->setups.nonce, NONCE_SIZE);
    message.running = s->state != INCOMING_ARRIVES;
    setup_message.kind_case = DISCOVERY__SETUP_MESSAGE__KIND_CHALLENGE;
    setup_message.challenge = &message;
    setup_message_send(d, &setup_message);
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
        free_incoming(d, place_of(d, s));
        return;
    }
    memcpy(s->result, end->sealed, end->size);
    s->result_size = end->size;
    s->state = INCOMING_ANSWERS;
    s->heard_at = discovery_now(d);
    setup_message_send_first(d, &s->from, s->id, s->result, s->result_size);
}

/* Finds the place of a setup; SETUPS_IN_MOST: it is not known. */
static unsigned find_incoming(const struct discovery *d, const struct host_id *from,
                              const uint8_t *id)
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
                        const struct received_setup_message *l)
{
    return may_be_forgotten(s) && host_id_is(&s->from, l->from) &&
           discovery_now(d) >= s->heard_at + SENDER_PAUSE;
}

/* Finds a place. Strangers on one interface have at most half of the places, whatever names they use; and a host that
 * has proved the cluster key gets the place of one that has not. */
static unsigned find_room(struct discovery *d, const struct received_setup_message *l)
{
    unsigned room = SETUPS_IN_MOST, held = 0, stranger = SETUPS_IN_MOST;

    for (unsigned i = 0; i < SETUPS_IN_MOST; i++) {
        const struct incoming_setup *s = d->setups.in[i];
        if (s != NULL && is_given_up(d, s, l))
            free_incoming(d, i);
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
        free_incoming(d, stranger);
        room = stranger;
    }
    return room;
}

/* Makes a record of a setup that is announced. */
static void begin(struct discovery *d, const struct received_setup_message *l)
{
    const struct host_id *from = l->from;
    const uint8_t *id = l->setup_message->setup.data;
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
        setup_message_send_first(d, &s->from, s->id, s->result, s->result_size);
}

void setup_take_message(struct discovery *d, const struct received_setup_message *l)
{
    const struct host_id *from = l->from;
    const Discovery__SetupMessage *setup_message = l->setup_message;
    const uint8_t *id = setup_message->setup.data;
    unsigned place = find_incoming(d, from, id);
    struct incoming_setup *s;

    if (place == SETUPS_IN_MOST) {
        if (setup_message->kind_case == DISCOVERY__SETUP_MESSAGE__KIND_ASK)
            begin(d, l);
        return;
    }
    s = d->setups.in[place];
    s->heard_at = discovery_now(d);
    if (setup_message->kind_case == DISCOVERY__SETUP_MESSAGE__KIND_ASK) {
        take_ask(d, s);
    } else if (setup_message->kind_case == DISCOVERY__SETUP_MESSAGE__KIND_CHUNK &&
               s->state == INCOMING_ARRIVES) {
        s->missing_due = discovery_now(d) + MISSING_PAUSE;
        if (setup_message_take_chunk(d, from, s->id, &s->sealed, setup_message->chunk))
            s->state = INCOMING_WAITS;
    } else if (setup_message->kind_case == DISCOVERY__SETUP_MESSAGE__KIND_MISSING &&
               s->result != NULL) {
        setup_message_send_chunks(d, from, s->id, s->result, s->result_size,
                                  setup_message->missing);
    } else if (setup_message->kind_case == DISCOVERY__SETUP_MESSAGE__KIND_DONE &&
               s->state == INCOMING_ANSWERS) {
        free_incoming(d, place);
    }
}

/* Gives the setup to what applies it, unless another setup is being applied. */
static void start(struct discovery *d, struct incoming_setup *s)
{
    if (d->setups.busy)
        return;
    s->state = INCOMING_RUNS;
    d->setups.busy = true;
    d->setups.given = s;
    d->io.apply(d->io.context, s->id, &s->from, s->sealed.bytes, s->sealed.size);
    sealed_message_free(&s->sealed);
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
            free_incoming(d, i);
            continue;
        }
        if (s->state == INCOMING_ARRIVES && s->sealed.bytes != NULL && now >= s->missing_due) {
            setup_message_send_missing(d, &s->from, s->id, &s->sealed);
            s->missing_due = now + MISSING_PAUSE;
        }
        if (s->state == INCOMING_ARRIVES && s->sealed.bytes != NULL && s->missing_due < next)
            next = s->missing_due;
        if (s->heard_at + SENDER_WAIT < next)
            next = s->heard_at + SENDER_WAIT;
    }
    return next;
}
