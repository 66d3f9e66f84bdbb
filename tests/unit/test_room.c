/* Room on the data roots: what is known of a file system that answers, fails, or holds whoever asks it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/torusd/metrics/room.h"
#include "tests/support/cmocka.h"

enum { GOOD, DEAD, BROKEN, ROOTS };

static uv_loop_t loop;
static struct {
    char path[64];
    struct stat status;
} folder[ROOTS];
static pthread_mutex_t dead = PTHREAD_MUTEX_INITIALIZER; /* locked: DEAD does not answer */

static bool is(int fd, unsigned which)
{
    struct stat status;

    return fstat(fd, &status) == 0 && status.st_ino == folder[which].status.st_ino;
}

static int ask(int fd, struct statvfs *out)
{
    *out = (struct statvfs){
        .f_frsize = 4096, .f_bsize = 512, .f_blocks = 100, .f_bfree = 30, .f_bavail = 20};
    if (is(fd, DEAD)) {
        (void)pthread_mutex_lock(&dead);
        (void)pthread_mutex_unlock(&dead);
    }
    if (!is(fd, BROKEN))
        return 0;
    errno = EIO;
    return -1;
}

static void on_closed(void *context)
{
    *(bool *)context = true;
}

static void make_roots(struct roots *roots, char *above)
{
    static const char *const names[ROOTS] = {"good", "dead", "broken"};
    struct error e;

    *roots = (struct roots){0};
    assert_non_null(mkdtemp(above));
    for (unsigned i = 0; i < ROOTS; i++) {
        (void)snprintf(folder[i].path, sizeof folder[i].path, "%s/%s", above, names[i]);
        assert_int_equal(mkdir(folder[i].path, 0700), 0);
        assert_int_equal(stat(folder[i].path, &folder[i].status), 0);
        assert_int_equal(roots_add(roots, file_system_posix(), folder[i].path, &e), 0);
    }
}

static void remove_roots(struct roots *roots, const char *above)
{
    roots_free(roots);
    for (unsigned i = 0; i < ROOTS; i++)
        assert_int_equal(rmdir(folder[i].path), 0);
    assert_int_equal(rmdir(above), 0);
}

/* Lets the loop run until the answer of a root is known, and is this. */
static struct room_answer await(struct room *room, unsigned which, bool answers)
{
    struct room_answer answer;

    do {
        (void)uv_run(&loop, UV_RUN_ONCE);
        assert_true(room_tell(room, which, &answer));
    } while (!answer.known || answer.answers != answers);
    assert_string_equal(answer.path, folder[which].path);
    return answer;
}

TEST(a_file_system_without_an_answer_holds_nothing_else)
{
    char above[] = "/tmp/torus-room-XXXXXX";
    bool closed = false;
    const struct room_setup setup = {.loop = &loop,
                                     .ask = ask,
                                     .every_ms = 5,
                                     .keep_ms = 200,
                                     .closed = on_closed,
                                     .context = &closed};
    struct room_answer answer;
    struct roots roots;

    make_roots(&roots, above);
    assert_int_equal(uv_loop_init(&loop), 0);
    (void)pthread_mutex_lock(&dead);
    struct room *room = room_open(&setup);
    assert_non_null(room);
    room_of(room, &roots);
    assert_true(room_tell(room, DEAD, &answer));
    assert_false(answer.known); /* it may be slow only */
    answer = await(room, GOOD, true);
    assert_int_equal(answer.size, 100 * 4096);
    assert_int_equal(answer.free, 20 * 4096);
    (void)await(room, BROKEN, false);
    (void)await(room, DEAD, false);
    (void)await(room, GOOD, true);
    (void)pthread_mutex_unlock(&dead);
    (void)await(room, DEAD, true);
    (void)pthread_mutex_lock(&dead);
    (void)await(room, DEAD, false);
    assert_false(room_tell(room, ROOTS, &answer));
    /* Neither other roots nor the end wait for the thread that is held. */
    room_of(room, &(struct roots){0});
    assert_false(room_tell(room, 0, &answer));
    room_close(room);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(closed);
    assert_int_equal(uv_loop_close(&loop), 0);
    (void)pthread_mutex_unlock(&dead);
    remove_roots(&roots, above);
}
