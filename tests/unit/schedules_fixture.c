/* See schedules_fixture.h. */
#include "schedules_fixture.h"

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/file/export.h"
#include "tests/support/cmocka.h"

#define TEXT(text) ((char *)(uintptr_t)(text))

void schedule_file_name(struct schedule_file *f)
{
    sha256_text(f->text, f->length, f->digest);
}

struct schedule_file schedule_file_for(const char *dims, uint32_t spaces)
{
    struct schedule_file f = {.length = 0};
    struct torus t;
    FILE *out = fmemopen(f.text, sizeof f.text, "w");

    assert_int_equal(torus_parse(&t, dims, NULL), 0);
    assert_int_equal(schedule_export(out, &t, algorithm_find("direct"), false, NULL), 0);
    f.length = (uint32_t)ftell(out);
    assert_int_equal(fclose(out), 0);
    memset(f.text + f.length, ' ', spaces);
    f.length += spaces;
    schedule_file_name(&f);
    return f;
}

void schedules_open(struct exchange_fixture *n, uint32_t rank)
{
    xf_init(n);
    xf_open(n, "3m", rank);
}

void schedules_say_prepare(struct exchange_fixture *n, const struct schedule_file *f)
{
    struct xf_prepare p;

    xf_prepare_init(&p, n);
    xf_prepare_generated(&p);
    p.spec.algorithm = TEXT("");
    p.spec.schedule = TEXT(f->digest);
    assert_true(xf_say(n, SCHEDULES_PARENT, &p.message));
    assert_int_equal(xf_hear(n, SCHEDULES_CHILD), PEER_PREPARE);
}

void schedules_say_prepare_again(struct exchange_fixture *n, const struct schedule_file *f)
{
    struct xf_prepare p;

    xf_prepare_init(&p, n);
    xf_prepare_generated(&p);
    p.message.prepare.id = TEXT("0-0000004d-9");
    p.message.prepare.exchange = XF_HANDLE + 3;
    p.spec.algorithm = TEXT("");
    p.spec.schedule = TEXT(f->digest);
    assert_true(xf_say(n, SCHEDULES_PARENT, &p.message));
}

bool schedules_say_query(struct exchange_fixture *n, const char *digest, uint32_t offset)
{
    struct peer_schedule_query query = {0};

    query.digest = TEXT(digest);
    query.offset = offset;
    const struct peer_message head = {.kind = PEER_SCHEDULE_QUERY, .schedule_query = query};
    return xf_say(n, SCHEDULES_CHILD, &head);
}

bool schedules_say_part(struct exchange_fixture *n, const struct schedule_file *f, uint32_t total,
                        uint32_t offset, size_t length)
{
    struct peer_schedule_part part = {0};

    part.digest = TEXT(f->digest);
    part.total = total;
    part.offset = offset;
    part.part.data = (uint8_t *)TEXT(f->text) + offset;
    part.part.len = length;
    const struct peer_message head = {.kind = PEER_SCHEDULE_PART, .schedule_part = part};
    return xf_say(n, SCHEDULES_PARENT, &head);
}

void schedules_hear_query(struct exchange_fixture *n, const struct schedule_file *f,
                          uint32_t offset)
{
    struct peer_message *head = xf_next(n, SCHEDULES_PARENT);

    assert_non_null(head);
    assert_int_equal(head->kind, PEER_SCHEDULE_QUERY);
    assert_string_equal(head->schedule_query.digest, f->digest);
    assert_int_equal(head->schedule_query.offset, offset);
    message_forget(head);
}

void schedules_hear_part(struct exchange_fixture *n, const struct schedule_file *f, uint32_t total,
                         uint32_t offset, size_t length)
{
    struct peer_message *head = xf_next(n, SCHEDULES_CHILD);

    assert_non_null(head);
    assert_int_equal(head->kind, PEER_SCHEDULE_PART);
    assert_string_equal(head->schedule_part.digest, f->digest);
    assert_int_equal(head->schedule_part.total, total);
    assert_int_equal(head->schedule_part.offset, offset);
    assert_int_equal(head->schedule_part.part.len, length);
    if (length > 0)
        assert_memory_equal(head->schedule_part.part.data, f->text + offset, length);
    message_forget(head);
}

void schedules_hear_objection(struct exchange_fixture *n, enum error_code code, const char *part)
{
    struct peer_message *head = xf_next(n, SCHEDULES_PARENT);

    assert_non_null(head);
    assert_int_equal(head->kind, PEER_OBJECTION);
    if (head->objection.code != code ||
        (part != NULL && strstr(head->objection.reason, part) == NULL))
        fail_msg("%u: \"%s\" instead of %d: \"%s\"", head->objection.code, head->objection.reason,
                 (int)code, part != NULL ? part : "");
    message_forget(head);
}
