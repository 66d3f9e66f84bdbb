#include "handshake_fixture.h"

#include <sodium.h>

#include "proto/frame.h"
#include "tests/support/cmocka.h"

void fill(void *context, void *buffer, size_t size)
{
    struct side *s = context;
    uint8_t *out = buffer;

    while (size-- > 0)
        *out++ = (uint8_t)((s->random = s->random * 6364136223846793005u + 1) >> 56);
}

void say(void *context, const struct peer_message *head)
{
    struct side *s = context;

    assert_true(s->says < SAID_MOST);
    s->length[s->says] = message_write(head, s->said[s->says], sizeof s->said[s->says]);
    assert_in_range(s->length[s->says], 1, FRAME_MAX_STRANGER_HEAD);
    s->says++;
}

struct secrets keys(const char *first, const char *second)
{
    const char *name[] = {first, second};
    struct secrets s = {0};

    for (unsigned i = 0; i < SECRETS_MOST && name[i] != NULL; i++) {
        uint8_t bytes[KEY_SIZE] = {0};
        memcpy(bytes, name[i], strlen(name[i]));
        key_set(&s.key[s.count++], bytes);
    }
    return s;
}

void place(struct pair *p, struct side *s, uint32_t rank, unsigned port, uint64_t seed)
{
    s->random = seed;
    s->place = (struct handshake_place){.torus = &p->torus,
                                        .secrets = &s->secrets,
                                        .address = "peer:1",
                                        .rank = rank,
                                        .neighbour = torus_neighbour(&p->torus, rank, port),
                                        .port = port,
                                        .boot = rank + 1,
                                        .minor = PROTOCOL_MINOR,
                                        .random = fill,
                                        .random_context = s,
                                        .say = say,
                                        .say_context = s};
}

void begin(struct pair *p, struct secrets dialler, struct secrets listener, uint64_t seed)
{
    *p = (struct pair){0};
    assert_int_equal(torus_parse(&p->torus, "4x4", NULL), 0);
    p->dialler.secrets = dialler;
    p->listener.secrets = listener;
    place(p, &p->dialler, 1, 0, 2 * seed + 1000003);
    place(p, &p->listener, 5, 1, 2 * seed + 1000004);
    handshake_begin(&p->dialler.handshake, &p->dialler.place, true);
    handshake_begin(&p->listener.handshake, &p->listener.place, false);
}

int hear_bytes(struct side *s, const uint8_t *bytes, size_t length, struct error *e)
{
    struct peer_message *head = message_read(bytes, length);
    int result;

    assert_non_null(head);
    result = handshake_heard(&s->handshake, &s->place, head, e);
    message_forget(head);
    return result;
}

int hear(struct side *s, struct side *from, struct error *e)
{
    unsigned i = from->heard++;

    assert_true(i < from->says);
    return hear_bytes(s, from->said[i], from->length[i], e);
}

struct side *run(struct pair *p, struct error *e)
{
    for (;;) {
        if (p->dialler.heard < p->dialler.says) {
            if (hear(&p->listener, &p->dialler, e) != 0)
                return &p->listener;
        } else if (p->listener.heard < p->listener.says) {
            if (hear(&p->dialler, &p->listener, e) != 0)
                return &p->dialler;
        } else {
            return NULL;
        }
    }
}

void check_done(struct pair *p)
{
    struct error e = {0};

    if (run(p, &e) != NULL)
        fail_msg("%s", e.text);
    assert_int_equal(p->dialler.handshake.state, HANDSHAKE_DONE);
    assert_int_equal(p->listener.handshake.state, HANDSHAKE_DONE);
}

void check_refused(struct pair *p, struct side *by, const char *text)
{
    struct error e = {0};

    assert_ptr_equal(run(p, &e), by);
    assert_int_equal(e.code, ERROR_PROTOCOL);
    if (strstr(e.text, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, e.text);
    assert_int_not_equal(by->handshake.state, HANDSHAKE_DONE);
}
