/* Settings that are read again: what differs, and what a running daemon takes over. */
#include "daemon/lib/base/log.h"
#include "daemon/torusd/config.h"
#include "daemon/torusd/settings.h"
#include "folder_fixture.h"
#include "tests/support/cmocka.h"

TEST(every_setting_is_compared_when_settings_are_read_again)
{
    for (const struct setting *s = config_settings; s->option != NULL; s++)
        if (s->name != NULL && strcmp(s->name, "coordinates") != 0 && !config_compares(s->name))
            fail_msg("%s is in no row of config.c", s->name);
}

/* Reads settings into *c, and finishes them. */
static void read_settings(void **state, struct config *c, const char *text)
{
    const char *path = at(state, "torusd.ini");
    struct error e = {0};

    make_file(path, text, strlen(text));
    config_init(c);
    if (config_read(c, path, &e) != 0 || config_finish(c, &e) != 0)
        fail_msg("%s", e.text);
}

static void check_changes(void **state, const struct config *now, const char *text,
                          const char *changed_names, const char *other_names)
{
    char changed[CONFIG_CHANGES_SIZE], others[CONFIG_CHANGES_SIZE];
    struct config fresh;

    read_settings(state, &fresh, text);
    config_changes(now, &now->roots, &fresh, changed, others);
    assert_string_equal(changed, changed_names);
    assert_string_equal(others, other_names);
    config_free(&fresh);
}

FOLDER_TEST(changes_are_listed_and_taken)
{
    static const char text[] = "[node]\ndims = 2mx2m\nrank = 0\n"
                               "[ports]\n+0 = 10.0.0.2:7411\n+1 = 10.0.1.2:7411\n";
    static const char other[] = "[node]\ndims = 2mx3m\ncoordinates = 0,0\nmemory = 95MiB\n"
                                "key_file = /x\nencrypt = yes\nlog_level = debug\n"
                                "[ports]\n+0 = 10.0.0.2:7411\n+1 = 10.0.1.3:7411\n";
    static const char fewer[] = "[node]\ndims = 2mx1\nrank = 0\n[ports]\n+0 = 10.0.0.2:7411\n";
    struct config now, fresh;

    read_settings(state, &now, text);
    check_changes(state, &now, text, "", "");
    check_changes(state, &now, other, "key_file, log_level", "dims, encrypt, memory, +1");
    check_changes(state, &now, fewer, "", "dims, +1");
    read_settings(state, &fresh, other);
    config_take_changes(&now, &fresh);
    config_free(&fresh);
    assert_string_equal(now.key_file, "/x");
    assert_int_equal(now.log_level, LOG_LEVEL_DEBUG);
    assert_false(now.encrypt);
    check_changes(state, &now, other, "", "dims, encrypt, memory, +1");
    config_free(&now);
}
