/* Access rights of results. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "target_fixture.h"
#include "tests/support/cmocka.h"

#define NOBODY 54321 /* a user and group that no system has */

FOLDER_TEST(a_new_folder_has_the_configured_mode)
{
    static const mode_t modes[][3] = {
        {0700, 0700, 0600}, {0770, 0770, 0660}, {0755, 0755, 0644}, {02750, 02750, 0640}};
    mode_t mask = umask(027);

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct fixture f;
        open_fixture(&f, state);
        f.output_mode = modes[i][0];
        fill_well(&f, false);
        place_well(&f);
        check_new(state);
        check_status(at(state, "data/in"), modes[i][1], geteuid(), getegid());
        check_status(at(state, "data/in/1"), modes[i][2], geteuid(), getegid());
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
    (void)umask(mask);
}

FOLDER_TEST(folders_above_have_it_too)
{
    struct fixture f;
    struct error e;
    open_fixture(&f, state);
    f.output_mode = 0750;
    assert_int_equal(roots_find_target(&f.roots, at(state, "data/x/y/in"), &f.place, &e), 0);
    fill_well(&f, false);
    place_well(&f);
    check_status(at(state, "data/x"), 0750, geteuid(), getegid());
    check_status(at(state, "data/x/y"), 0750, geteuid(), getegid());
    check_status(at(state, "data/x/y/in"), 0750, geteuid(), getegid());
    close_fixture(&f);
}

FOLDER_TEST(a_folder_is_private_while_it_is_filled)
{
    struct fixture f;
    char path[FIXTURE_PATH + NAME_MAX];
    open_fixture(&f, state);
    f.output_mode = 0777;
    make_folder(at(state, "data/in"));
    assert_int_equal(chmod(at(state, "data/in"), 0755), 0);
    fill_well(&f, false);
    (void)snprintf(path, sizeof path, "%s/%s", at(state, "data"), f.target.entry.temporary);
    check_status(path, 0700, geteuid(), getegid());
    place_well(&f);
    check_status(at(state, "data/in"), 0755, geteuid(), getegid());
    check_status(at(state, "data/in/0"), 0644, geteuid(), getegid());
    close_fixture(&f);
}

FOLDER_TEST(a_prepared_folder_keeps_mode_owner_and_group)
{
    static const mode_t modes[][2] = {{0700, 0600}, {02770, 0660}, {01777, 0666}, {02750, 0640}};

    if (geteuid() != 0)
        skip();
    for (size_t i = 0; i < 2 * sizeof modes / sizeof *modes; i++) {
        struct fixture f;
        const mode_t *mode = modes[i / 2];
        open_fixture(&f, state);
        const char *in = at(state, "data/in");
        make_folder(in);
        assert_int_equal(chown(in, NOBODY, NOBODY + 1), 0);
        assert_int_equal(chmod(in, mode[0]), 0);
        fill_well(&f, false);
        if (i % 2 == 1) { /* the daemon is killed and started again */
            struct error e;
            target_close(&f.target);
            target_init(&f.target, &f.roots, &f.journal, &f.made, f.output_mode, ID);
            assert_int_equal(target_reopen(&f.target, &e), 0);
        }
        place_well(&f);
        check_new(state);
        check_status(in, mode[0], NOBODY, NOBODY + 1);
        check_status(at(state, "data/in/0"), mode[1], NOBODY, NOBODY + 1);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* As an ordinary user, which cannot give a folder away. */
FOLDER_TEST(what_cannot_be_kept_is_refused)
{
    struct fixture f;

    if (geteuid() != 0)
        skip();
    open_fixture(&f, state);
    assert_int_equal(chmod(*state, 0755), 0);
    assert_int_equal(chmod(at(state, "data"), 0777), 0);
    assert_int_equal(chmod(at(state, "state"), 0777), 0);
    make_folder(at(state, "data/in"));
    assert_int_equal(chmod(at(state, "data/in"), 0777), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    check_refused(&f, false, "cannot give to the new folder in its place: Operation not permitted");
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(at(state, "data/in"), 0755), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    check_refused(&f, false, ": Permission denied");
    assert_int_equal(seteuid(0), 0);
    close_fixture(&f);
}

/* Version 2; entries of tag, permissions and id: the owner, user NOBODY, the group, the mask, others. */
static const uint8_t list[] = {2, 0,    0,    0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,  7,
                               0, 0x31, 0xd4, 0,   0,   4,   0,  5, 0,   255, 255, 255, 255, 16, 0,
                               5, 0,    255,  255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255};

FOLDER_TEST(access_control_lists_are_kept)
{
    for (int restarted = 0; restarted < 2; restarted++) {
        struct fixture f;
        uint8_t found[64];
        open_fixture(&f, state);
        const char *in = at(state, "data/in");
        make_folder(in);
        if (setxattr(in, "system.posix_acl_access", list, sizeof list, 0) != 0)
            skip(); /* none on this file system */
        assert_int_equal(setxattr(in, "system.posix_acl_default", list, sizeof list, 0), 0);
        fill_well(&f, false);
        const char *hidden = at(state, "data/%s", f.target.entry.temporary);
        check_status(hidden, 0700, geteuid(), getegid()); /* the mask permits nothing */
        if (restarted == 1) {
            struct error e;
            target_close(&f.target);
            target_init(&f.target, &f.roots, &f.journal, &f.made, f.output_mode, ID);
            assert_int_equal(target_reopen(&f.target, &e), 0);
        }
        place_well(&f);
        check_new(state);
        assert_int_equal(getxattr(in, "system.posix_acl_access", found, sizeof found), sizeof list);
        assert_memory_equal(found, list, sizeof list);
        assert_int_equal(getxattr(in, "system.posix_acl_default", found, sizeof found),
                         sizeof list);
        assert_memory_equal(found, list, sizeof list);
        const char *file = at(state, "data/in/0");
        assert_int_equal(getxattr(file, "system.posix_acl_access", found, sizeof found),
                         sizeof list);
        check_status(file, 0640, geteuid(), getegid()); /* files follow the default list */
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* A new folder follows the list of the folder above it, as far as its mode permits. */
FOLDER_TEST(an_inherited_list_is_limited_by_the_mode)
{
    static const mode_t modes[][3] = {{0700, 0700, 0600}, {0777, 0750, 0640}};

    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        open_fixture(&f, state);
        if (setxattr(at(state, "data"), "system.posix_acl_default", list, sizeof list, 0) != 0)
            skip();
        f.output_mode = modes[i][0];
        fill_well(&f, false);
        place_well(&f);
        check_status(at(state, "data/in"), modes[i][1], geteuid(), getegid());
        check_status(at(state, "data/in/0"), modes[i][2], geteuid(), getegid());
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* The set-group-ID bit of the folder above says which group new files get, with a list and without. */
FOLDER_TEST(a_new_folder_inherits_the_set_group_id)
{
    for (int with_list = 0; with_list < 2; with_list++) {
        struct fixture f;
        struct error e;
        struct stat st;
        static const char *const made[] = {"data/x", "data/x/in"};
        open_fixture(&f, state);
        assert_int_equal(chmod(at(state, "data"), 02755), 0);
        if (with_list != 0 &&
            setxattr(at(state, "data"), "system.posix_acl_default", list, sizeof list, 0) != 0)
            skip();
        f.output_mode = 0750;
        assert_int_equal(roots_find_target(&f.roots, at(state, "data/x/in"), &f.place, &e), 0);
        fill_well(&f, false);
        place_well(&f);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(stat(at(state, made[i]), &st), 0);
            assert_int_equal(st.st_mode & S_ISGID, S_ISGID);
        }
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}
