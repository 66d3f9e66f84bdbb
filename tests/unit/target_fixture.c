#include "target_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "tests/support/cmocka.h"

void open_fixture(struct fixture *f, void **state)
{
    struct error e;

    log_set_level(LOG_LEVEL_ERROR);
    *f = (struct fixture){.output_mode = 0700};
    faulty_files_init(&f->files);
    made_folders_init(&f->made);
    make_folder(at(state, "data"));
    assert_int_equal(chmod(at(state, "data"), 0755), 0);
    assert_int_equal(roots_add(&f->roots, &f->files.files, at(state, "data"), &e), 0);
    assert_int_equal(journal_open(&f->journal, &f->files.files, at(state, "state"), &e), 0);
    assert_int_equal(roots_find_target(&f->roots, at(state, "data/in"), &f->place, &e), 0);
}

void close_fixture(struct fixture *f)
{
    journal_close(&f->journal);
    made_folders_free(&f->made);
    roots_free(&f->roots);
    assert_int_equal(f->files.open, 0);
}

int fill(struct fixture *f, bool replace, struct error *e)
{
    const struct file_system *files = &f->files.files;
    const struct iovec bytes = {(char *)(uintptr_t) "new", 3};

    target_init(&f->target, &f->roots, &f->journal, &f->made, f->output_mode, ID);
    if (target_prepare(&f->target, &f->place, 0, replace, e) != 0)
        return -1;
    for (uint32_t i = 0; i < 2; i++) {
        int file = target_create(&f->target, i, e);
        if (file < 0)
            return -1;
        ssize_t n = files->write(files->context, file, &bytes, 1, 0);
        files->close(files->context, file);
        if (n != 3)
            return error_set(e, ERROR_IO, "%s", strerror((int)-n));
    }
    uint64_t contents;
    return target_contents(&f->target, &contents, e) == 0 ? target_seal(&f->target, contents, e)
                                                          : -1;
}

void fill_well(struct fixture *f, bool replace)
{
    struct error e;

    if (fill(f, replace, &e) != 0)
        fail_msg("%s", e.text);
}

void place_well(struct fixture *f)
{
    struct error e;

    if (target_place(&f->target, &e) != 0)
        fail_msg("%s", e.text);
    target_close(&f->target);
}

void check_refused(struct fixture *f, bool replace, const char *text)
{
    unsigned before = entries(f->roots.path[0]);
    struct error e;

    assert_int_equal(fill(f, replace, &e), -1);
    if (strstr(e.text, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, e.text);
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_int_equal(target_discard(&f->target, &e), 0);
    assert_int_equal(entries(f->roots.path[0]), before);
}

void check_status(const char *path, mode_t mode, uid_t owner, gid_t group)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    if ((st.st_mode & 07777) != mode || st.st_uid != owner || st.st_gid != group)
        fail_msg("%s: mode %04o, owner %u, group %u", path, st.st_mode & 07777, st.st_uid,
                 st.st_gid);
}

void check_new(void **state)
{
    assert_int_equal(entries(at(state, "data")), 1);
    assert_int_equal(entries(at(state, "data/in")), 2);
    check_file(at(state, "data/in/0"), "new", 3);
    check_file(at(state, "data/in/1"), "new", 3);
    assert_int_equal(entries(at(state, "state")), 0);
}
