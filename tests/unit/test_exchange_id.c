/* Ids of exchanges and their texts. */
#include "daemon/torusd/exchange/id.h"
#include "tests/support/cmocka.h"

TEST(ids_are_read_as_they_are_made)
{
    static const struct exchange_id rows[] = {
        {0, 0, 1, "0-00000000-1"},
        {12, 0x4d, 5, "12-0000004d-5"},
        {4294967295u, 4294967295u, 4294967295u, "4294967295-ffffffff-4294967295"}};
    struct exchange_id id;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        id = exchange_id_make(rows[i].root, rows[i].boot, rows[i].counter);
        assert_string_equal(id.text, rows[i].text);
        assert_int_equal(exchange_id_parse(&id, rows[i].text), 0);
        assert_true(exchange_id_equal(&id, &rows[i]));
        assert_string_equal(id.text, rows[i].text);
        assert_false(exchange_id_is_none(&id));
    }
}

TEST(malformed_ids_are_refused)
{
    static const char *const texts[] = {
        "",
        "0",
        "0-0000004d",
        "0-0000004d-",
        "0-0000004d-0",
        "0-4d-1",
        "0-0000004D-1",
        "+0-0000004d-1",
        " 0-0000004d-1",
        "0-0000004d-1 ",
        "0-0000004d-+1",
        "00-0000004d-1",
        "0-0000004d-01",
        "0-0000004d-1-1",
        "-1-0000004d-1",
        "4294967296-0000004d-1",
        "0-0000004d-4294967296",
        "0-10000004d-1",
        "0-0000004d-\x01",
        "0-0000004d-99999999999999999999999999999999999999999999999999999999999999999999999999999"};
    struct exchange_id id;
    struct error e;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        id = exchange_id_make(1, 2, 3);
        if (exchange_id_parse(&id, texts[i]) == 0)
            fail_msg("\"%s\" was taken for an id", texts[i]);
        assert_true(exchange_id_is_none(&id));
        assert_string_equal(id.text, "");
        assert_fails(exchange_id_read(&id, texts[i], 4, "outcome", &e), e, ERROR_PROTOCOL, "");
    }
    assert_int_equal(exchange_id_read(&id, "3-0000004d-1", 4, "outcome", &e), 0);
    assert_fails(exchange_id_read(&id, "4-0000004d-1", 4, "outcome", &e), e, ERROR_PROTOCOL, "");
}

TEST(ids_are_compared_by_all_that_they_say)
{
    const struct exchange_id id = exchange_id_make(1, 2, 3), same = exchange_id_make(1, 2, 3);
    const struct exchange_id others[] = {exchange_id_make(0, 2, 3), exchange_id_make(1, 1, 3),
                                         exchange_id_make(1, 2, 4), NO_ID};

    assert_true(exchange_id_equal(&id, &same));
    assert_true(exchange_id_hash(&id) == exchange_id_hash(&same));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(exchange_id_equal(&id, &others[i]));
        assert_true(exchange_id_hash(&id) != exchange_id_hash(&others[i]));
    }
    assert_true(exchange_id_is_before(&id, &others[2]));
    assert_false(exchange_id_is_before(&others[2], &id));
    assert_false(exchange_id_is_before(&id, &same));
    assert_false(exchange_id_is_before(&others[1], &id)); /* another start of the root */
    assert_false(exchange_id_is_before(&id, &others[1]));
}
