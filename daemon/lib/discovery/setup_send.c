#include "daemon/lib/discovery/setup_send.h"

#include <stdlib.h>

#include "daemon/lib/discovery/blob.h"
#include "daemon/lib/discovery/letter.h"
#include "proto/text.h"

#define ASK_PAUSE (400 * MILLISECONDS)
#define ANSWER_WAIT (20 * SECONDS) /* for any word of the host */
#define DONE_TIMES 3               /* letters may get lost */

struct outgoing_setup {
    uint8_t id[SETUP_ID_SIZE];
    struct host_id host;
    char name[REPORT_NAME_SIZE]; /* of the host, for errors */
    uint8_t nonce[NONCE_SIZE];   /* of the challenge */
    bool challenged;
    uint8_t *sealed; /* for that challenge; NULL: the user seals it */
    size_t sealed_size;
    struct blob result;
    uint64_t ask_due, heard_at;
    struct setup_user user;
};

static void free_setup(struct outgoing_setup *s)
{
    free(s->sealed);
    blob_free(&s->result);
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
    free_setup(s);
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
    free_setup(setup);
}

void setup_send_free(struct discovery *d)
{
    for (unsigned i = 0; i < SETUPS_OUT_MOST; i++)
        if (d->setups.out[i] != NULL)
            discovery_cancel_setup(d, d->setups.out[i]);
}

/* --- the beginning --- */

/* Checks that a setup can be sent to the host. Which key the host has now it says itself: while keys are changed, its
 * report may be older. Returns its entry, or NULL with *e. */
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
    if (!s->challenged || s->sealed != NULL || size == 0 || size > BLOB_MOST) {
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
    letter_send_first(d, &s->host, s->id, s->sealed, s->sealed_size);
}

/* --- letters --- */

static void ask(struct discovery *d, struct outgoing_setup *s)
{
    Discovery__Letter letter;
    Discovery__Ask message = DISCOVERY__ASK__INIT;

    letter_begin(d, &letter, &s->host, s->id);
    letter.kind_case = DISCOVERY__LETTER__KIND_ASK;
    letter.ask = &message;
    letter_send(d, &letter);
    s->ask_due = discovery_now(d) + ASK_PAUSE;
}

static void say_done(struct discovery *d, const struct outgoing_setup *s)
{
    Discovery__Letter letter;
    Discovery__Done message = DISCOVERY__DONE__INIT;

    letter_begin(d, &letter, &s->host, s->id);
    letter.kind_case = DISCOVERY__LETTER__KIND_DONE;
    letter.done = &message;
    for (int i = 0; i < DONE_TIMES; i++)
        letter_send(d, &letter);
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
    if (s->sealed == NULL || !letter_take_chunk(d, &s->host, s->id, &s->result, BLOB_MOST, chunk))
        return;
    say_done(d, s);
    end(d, s, &(struct setup_end){.sealed = s->result.bytes, .size = s->result.size});
}

static struct outgoing_setup *find(const struct discovery *d, const struct host_id *from,
                                   const Discovery__Letter *letter)
{
    for (unsigned i = 0; i < SETUPS_OUT_MOST; i++) {
        struct outgoing_setup *s = d->setups.out[i];
        if (s != NULL && host_id_is(&s->host, from) &&
            memcmp(s->id, letter->setup.data, SETUP_ID_SIZE) == 0)
            return s;
    }
    return NULL;
}

bool setup_send_take(struct discovery *d, const struct host_id *from,
                     const Discovery__Letter *letter)
{
    struct outgoing_setup *s = find(d, from, letter);
    char text[256];

    if (s == NULL)
        return false;
    s->heard_at = discovery_now(d);
    if (letter->kind_case == DISCOVERY__LETTER__KIND_CHALLENGE)
        take_challenge(d, s, letter->challenge);
    else if (letter->kind_case == DISCOVERY__LETTER__KIND_MISSING && s->sealed != NULL)
        letter_send_chunks(d, from, s->id, s->sealed, s->sealed_size, letter->missing);
    else if (letter->kind_case == DISCOVERY__LETTER__KIND_CHUNK)
        take_result_chunk(d, s, letter->chunk);
    else if (letter->kind_case == DISCOVERY__LETTER__KIND_REFUSAL)
        fail(d, s, ERROR_REFUSED, text_printable(text, sizeof text, letter->refusal->text));
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
                letter_send_missing(d, &s->host, s->id, &s->result);
            ask(d, s);
        }
        next = s->ask_due < next ? s->ask_due : next;
    }
    return next;
}
