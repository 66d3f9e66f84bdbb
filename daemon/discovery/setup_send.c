#include "daemon/discovery/setup_send.h"

#include <sodium.h>
#include <stdlib.h>

#include "daemon/discovery/blob.h"
#include "daemon/discovery/letter.h"
#include "daemon/discovery/seal.h"
#include "proto/text.h"

#define ASK_PAUSE (400 * MILLISECONDS)
#define ANSWER_WAIT (20 * SECONDS) /* for any word of the host */
#define DONE_TIMES 3               /* letters may get lost */

struct outgoing_setup {
    uint8_t id[SETUP_ID_SIZE];
    struct host_id host;
    char name[REPORT_NAME_SIZE]; /* of the host, for errors */
    bool apply;
    uint8_t *bytes;
    size_t size;
    struct reply_keys keys;
    uint8_t nonce[NONCE_SIZE]; /* of the last challenge */
    uint8_t *sealed;           /* for that challenge; NULL: none has come */
    size_t sealed_size;
    struct blob result;
    uint64_t ask_due, heard_at;
    setup_done_fn *done;
    void *context;
};

static void free_setup(struct outgoing_setup *s)
{
    if (s->bytes != NULL)
        sodium_memzero(s->bytes, s->size);
    free(s->bytes);
    free(s->sealed);
    blob_free(&s->result);
    sodium_memzero(&s->keys, sizeof s->keys);
    free(s);
}

static void forget(struct discovery *d, struct outgoing_setup *s)
{
    for (unsigned i = 0; i < SETUPS_OUT_MOST; i++)
        if (d->setups.out[i] == s)
            d->setups.out[i] = NULL;
    if (d->setups.sent_here == s)
        d->setups.sent_here = NULL;
}

/* Ends a setup with an answer. */
static void end(struct discovery *d, struct outgoing_setup *s, const struct setup_answer *answer)
{
    forget(d, s);
    s->done(s->context, answer);
    free_setup(s);
}

static void fail(struct discovery *d, struct outgoing_setup *s, enum error_code code,
                 const char *text)
{
    struct setup_answer answer = {0};

    (void)error_set(&answer.e, code, "host %s: %s", s->name, text);
    end(d, s, &answer);
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
                                           size_t size, struct error *e)
{
    const struct host_entry *h;

    (void)database_refresh(&d->database, discovery_now(d));
    h = database_find(&d->database, host);
    if (size > DISCOVERY_SETUP_MOST)
        (void)error_set(e, ERROR_USAGE, "the setup has %zu bytes, at most %u are possible", size,
                        DISCOVERY_SETUP_MOST);
    else if (h == NULL || !h->reachable)
        (void)error_set(e, ERROR_LINK, "%s%s is not reachable over the cables",
                        h != NULL ? "host " : "the host", h != NULL ? h->report->name : "");
    else if (!h->report->accepts_setups)
        (void)error_set(e, ERROR_REFUSED,
                        "host %s accepts no setups: start torusd-discover there with "
                        "--accept-setups, or enable torusd-discover.service",
                        h->report->name);
    else
        return h;
    return NULL;
}

/* Runs this host's own command. Returns 0, or -1 with *e. */
static int run_here(struct discovery *d, struct outgoing_setup *s, struct error *e)
{
    if (d->setups.running)
        return error_set(e, ERROR_BUSY, "another setup is being applied on this host: try again");
    if (d->io.run(d->io.context, s->apply, s->bytes, s->size, e) != 0)
        return -1;
    d->setups.running = true;
    d->setups.sent_here = s;
    s->ask_due = UINT64_MAX;
    return 0;
}

static struct outgoing_setup *make(struct discovery *d, const struct host_entry *h,
                                   const uint8_t *bytes, size_t size)
{
    struct outgoing_setup *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->bytes = malloc(size + 1);
    if (s->bytes == NULL) {
        free(s);
        return NULL;
    }
    if (size > 0)
        memcpy(s->bytes, bytes, size);
    s->size = size;
    s->host = h->report->host;
    (void)strcpy(s->name, h->report->name);
    s->heard_at = discovery_now(d);
    d->io.random(d->io.context, s->id, sizeof s->id);
    d->io.random(d->io.context, s->keys.secret_key, sizeof s->keys.secret_key);
    reply_keys_make(&s->keys);
    return s;
}

struct outgoing_setup *discovery_send_setup(struct discovery *d, const struct host_id *host,
                                            bool apply, const uint8_t *bytes, size_t size,
                                            setup_done_fn *done, void *context, struct error *e)
{
    const struct host_entry *h = check_host(d, host, size, e);
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
    s = make(d, h, bytes, size);
    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for the setup");
        return NULL;
    }
    s->apply = apply;
    s->done = done;
    s->context = context;
    if (h->distance == 0 && run_here(d, s, e) != 0) {
        free_setup(s);
        return NULL;
    }
    d->setups.out[place] = s;
    return s;
}

void setup_send_local_ended(struct discovery *d, const struct setup_answer *answer)
{
    end(d, d->setups.sent_here, answer);
}

/* --- letters --- */

static void ask(struct discovery *d, struct outgoing_setup *s)
{
    Discovery__Letter letter;
    Discovery__Ask message = DISCOVERY__ASK__INIT;

    letter_begin(d, &letter, &s->host, s->id);
    message.size = (uint32_t)s->size;
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

/* Seals the setup for a challenge, and sends its first chunks. */
static void take_challenge(struct discovery *d, struct outgoing_setup *s,
                           const Discovery__Challenge *challenge)
{
    const struct host_entry *h = database_find(&d->database, &s->host);
    const struct setup_frame frame = {s->id, &d->own.host, &s->host, s->nonce};
    struct error e;

    if (challenge->nonce.len != NONCE_SIZE || challenge->running || h == NULL ||
        (s->sealed != NULL && memcmp(s->nonce, challenge->nonce.data, NONCE_SIZE) == 0))
        return;
    memcpy(s->nonce, challenge->nonce.data, NONCE_SIZE);
    free(s->sealed);
    s->sealed = seal_setup(&frame, &d->secrets, h->key, &s->keys, s->apply, s->bytes, s->size,
                           &s->sealed_size, &e);
    if (s->sealed == NULL)
        fail(d, s, e.code, e.text);
    else
        letter_send_first(d, &s->host, s->id, s->sealed, s->sealed_size);
}

static void take_result_chunk(struct discovery *d, struct outgoing_setup *s,
                              const Discovery__Chunk *chunk)
{
    struct setup_answer answer;
    uint8_t *storage = NULL;
    struct error e;

    if (s->sealed == NULL || !letter_take_chunk(d, &s->host, s->id, &s->result, BLOB_MOST, chunk))
        return;
    if (open_result(s->nonce, &s->keys, s->result.bytes, s->result.size, &answer, &storage, &e) !=
        0) {
        fail(d, s, e.code, e.text);
        return;
    }
    say_done(d, s);
    if (answer.e.code != ERROR_NONE)
        (void)error_wrap(&answer.e, "host %s", s->name);
    end(d, s, &answer);
    free(storage);
}

static struct outgoing_setup *find(const struct discovery *d, const struct host_id *from,
                                   const Discovery__Letter *letter)
{
    for (unsigned i = 0; i < SETUPS_OUT_MOST; i++) {
        struct outgoing_setup *s = d->setups.out[i];
        if (s != NULL && s != d->setups.sent_here && host_id_is(&s->host, from) &&
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
        if (s == NULL || s == d->setups.sent_here)
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
