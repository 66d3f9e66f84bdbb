/* The socket for programs, and programs that break its rules: they get an error, and others are not affected. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/unit/guest.h"

/* ---- Messages -------------------------------------------------------------------------------- */

GUEST_TEST(test_wrong_messages)
{
    static const struct {
        uint32_t magic, version, kind;
        size_t size;
        uint32_t code;
        const char *said;
    } wrong[] = {
        {1, PROGRAM_VERSION, PROGRAM_OPEN, sizeof(struct program_message), ERROR_PROTOCOL,
         "does not speak the protocol"},
        {PROGRAM_MAGIC, 77, PROGRAM_OPEN, sizeof(struct program_message), ERROR_PROTOCOL,
         "version 77"},
        {PROGRAM_MAGIC, 78, PROGRAM_OPEN, 20, ERROR_PROTOCOL, "version 78"},
        {PROGRAM_MAGIC, PROGRAM_VERSION, PROGRAM_OPEN, 20, ERROR_PROTOCOL, "wrong size"},
        {PROGRAM_MAGIC, PROGRAM_VERSION, PROGRAM_OPEN, 1, ERROR_PROTOCOL, "wrong size"},
        {PROGRAM_MAGIC, PROGRAM_VERSION, PROGRAM_MEMORY, sizeof(struct program_message),
         ERROR_PROTOCOL, "is not allowed in its state"},
        {PROGRAM_MAGIC, PROGRAM_VERSION, PROGRAM_LEAVE, sizeof(struct program_message),
         ERROR_PROTOCOL, "is not allowed in its state"},
        {PROGRAM_MAGIC, PROGRAM_VERSION, 4711, sizeof(struct program_message), ERROR_PROTOCOL,
         "is not allowed in its state"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct program_message m = {
            .magic = wrong[i].magic, .version = wrong[i].version, .kind = wrong[i].kind};
        struct guest g;
        guest_connect(&g);
        assert_int_equal(send(g.fd, &m, wrong[i].size, 0), wrong[i].size);
        guest_expect_refusal(&g, wrong[i].code, wrong[i].said);
        guest_close(&g);
    }
    guest_expect_service(0);
}

GUEST_TEST(test_names)
{
    static const char *const unclean[] = {"\xe4", "one\n"};
    struct program_message m = guest_message(PROGRAM_OPEN, 0, 0);
    char name[80];
    struct guest g, other;

    memset(name, 'x', sizeof name);
    name[64] = '\0';
    guest_connect(&g);
    guest_say(&g, PROGRAM_OPEN, 0, 0, name);
    guest_expect_refusal(&g, ERROR_USAGE, "1 to 63 bytes, not 64");
    guest_close(&g);
    guest_connect(&g);
    guest_say(&g, PROGRAM_OPEN, 0, 0, "");
    guest_expect_refusal(&g, ERROR_USAGE, "not 0");
    guest_close(&g);
    guest_connect(&g);
    memset(m.text, 'x', sizeof m.text);
    assert_int_equal(send(g.fd, &m, sizeof m, 0), sizeof m);
    guest_expect_refusal(&g, ERROR_PROTOCOL, "without a terminating 0");
    guest_close(&g);
    for (size_t i = 0; i < sizeof unclean / sizeof *unclean; i++) {
        guest_connect(&g);
        guest_say(&g, PROGRAM_OPEN, 0, 0, unclean[i]);
        assert_int_equal(guest_hear(&g), PROGRAM_ERROR);
        assert_int_equal(g.m.code, ERROR_USAGE);
        GUEST_SAYS(g.m.text, "UTF-8 without control characters");
        guest_close(&g);
    }
    guest_open(&g, "\xc3\xa4");
    guest_close(&g);
    guest_open(&g, "one");
    guest_connect(&other);
    guest_say(&other, PROGRAM_OPEN, 0, 0, "one");
    guest_expect_refusal(&other, ERROR_REFUSED, "\"one\" open");
    guest_close(&other);
    programs_await_groups(&guest_daemon, 1);
    guest_close(&g);
    guest_expect_service(0);
}

/* The nodes that are left out come first, in as many messages as needed. */
GUEST_TEST(test_shrinking)
{
    static bool gone[6] = {[0] = true, [3] = true};
    struct guest g;

    guest_connect(&g);
    guest_say(&g, PROGRAM_SHRINK, 0, 0, "shrunk");
    assert_int_equal(guest_hear(&g), PROGRAM_OPENED); /* nobody is missing */
    guest_close(&g);
    programs_await_groups(&guest_daemon, 0);
    guest_daemon.groups.gone = gone;
    guest_connect(&g);
    guest_say(&g, PROGRAM_SHRINK, 0, 0, "shrunk");
    assert_int_equal(guest_hear(&g), PROGRAM_MISSING);
    assert_string_equal(g.m.text, "0 3 ");
    assert_int_equal(guest_hear(&g), PROGRAM_OPENED);
    guest_daemon.groups.gone = NULL;
    guest_close(&g);
    guest_expect_service(0);
}

static void say_flags(struct guest *g, uint32_t flags, const char *name)
{
    struct program_message m = guest_message(PROGRAM_OPEN, 0, 0);

    m.flags = flags;
    (void)snprintf(m.text, sizeof m.text, "%s", name);
    assert_int_equal(send(g->fd, &m, sizeof m, MSG_NOSIGNAL), sizeof m);
}

struct absent {
    uint32_t count;
    const char *list;
};

/* Until no node is absent. */
static void hold_open(struct programs_fixture *f, void *argument)
{
    const struct absent *absent = argument;

    f->groups.holds_open = absent != NULL;
    f->groups.missing = absent != NULL ? absent->list : NULL;
    f->groups.missing_count = absent != NULL ? absent->count : 0;
}

/* A program that asks for it is told the nodes that it waits for, and told again when they change; others are not. */
GUEST_TEST(test_waiting_for_others)
{
    struct absent both = {2, "3, 5"}, one = {1, "5"};
    struct guest g, silent;

    programs_do(&guest_daemon, hold_open, &both);
    guest_connect(&silent);
    say_flags(&silent, 0, "silent");
    guest_connect(&g);
    say_flags(&g, PROGRAM_TELL, "told");
    assert_int_equal(guest_hear(&g), PROGRAM_WAITING);
    assert_int_equal(g.m.number, 2);
    assert_string_equal(g.m.text, "3, 5");
    programs_do(&guest_daemon, hold_open, &one);
    assert_int_equal(guest_hear(&g), PROGRAM_WAITING);
    assert_int_equal(g.m.number, 1);
    assert_string_equal(g.m.text, "5");
    programs_do(&guest_daemon, hold_open, NULL);
    assert_int_equal(guest_hear(&silent), PROGRAM_OPENED);
    while (guest_hear(&g) == PROGRAM_WAITING)
        ;
    assert_int_equal(g.m.kind, PROGRAM_OPENED);
    guest_close(&silent);
    guest_close(&g);
    guest_expect_service(0);
}

GUEST_TEST(test_opening_twice)
{
    struct guest g;

    guest_open(&g, "twice");
    guest_say(&g, PROGRAM_OPEN, 0, 0, "again");
    guest_expect_refusal(&g, ERROR_PROTOCOL, "is not allowed in its state");
    GUEST_SAYS(g.page->failure.text, "is not allowed in its state");
    guest_close(&g);
    guest_expect_service(0);
    GUEST_SAYS(guest_daemon.groups.why.text, "program of node 4 has sent");
}

/* The daemon keeps none of the descriptors, of any kind. */
GUEST_TEST(test_descriptors_in_messages)
{
    int fd[64], pair[2];
    struct program_message m = guest_message(PROGRAM_OPEN, 0, 0);
    char room[CMSG_SPACE(sizeof fd)] __attribute__((aligned(8))) = {0};
    unsigned before = programs_descriptors();

    (void)strcpy(m.text, "x");
    for (unsigned count = 1; count <= 64; count *= 8) {
        struct iovec bytes = {&m, sizeof m};
        struct msghdr h = {.msg_iov = &bytes,
                           .msg_iovlen = 1,
                           .msg_control = room,
                           .msg_controllen = CMSG_SPACE(count * sizeof *fd)};
        struct guest g;
        assert_int_equal(pipe(pair), 0);
        guest_connect(&g);
        for (unsigned i = 0; i < count; i++)
            fd[i] = pair[1];
        *CMSG_FIRSTHDR(&h) = (struct cmsghdr){CMSG_LEN(count * sizeof *fd), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), fd, count * sizeof *fd);
        if (sendmsg(g.fd, &h, MSG_NOSIGNAL) == (ssize_t)sizeof m)
            guest_expect_refusal(&g, ERROR_PROTOCOL, "with descriptors");
        else
            assert_int_equal(errno, EPERM); /* the kernel does not pass them on */
        guest_close(&g);
        (void)close(pair[1]);
        struct pollfd p = {pair[0], POLLIN, 0};
        assert_int_equal(poll(&p, 1, -1), 1); /* nobody can write any more */
        (void)close(pair[0]);
    }
    guest_expect_service(0);
    assert_int_equal(programs_descriptors(), before);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

GUEST_TEST(test_memory_files)
{
    struct guest g;
    struct stat st;
    int fd;

    guest_open(&g, "files");
    for (unsigned i = 0; i < 2; i++) {
        if (i == 1) {
            int kept = g.descriptor[0];
            guest_say(&g, PROGRAM_MEMORY, 0, 8192, "");
            assert_int_equal(guest_hear(&g), PROGRAM_FILE);
            fd = g.descriptor[0];
            g.descriptor[0] = kept;
        } else {
            fd = g.descriptor[PROGRAM_FD_PAGE];
        }
        assert_int_equal(fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
        assert_int_equal(ftruncate(fd, 0), -1);
        assert_int_equal(ftruncate(fd, 1 << 20), -1);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_size, i == 1 ? 8192 : sizeof *g.page);
    }
    /* Not allocated: a write by the daemon could fail. */
    guest_say(&g, PROGRAM_MEMORY_READY, g.m.number, 0, "");
    assert_int_equal(guest_hear(&g), PROGRAM_MEMORY_REFUSED);
    assert_int_equal(g.m.code, ERROR_MEMORY);
    GUEST_SAYS(g.m.text, "only 0 are allocated");
    (void)close(fd);
    guest_say(&g, PROGRAM_MEMORY, 0, UINT64_MAX, "");
    assert_int_equal(guest_hear(&g), PROGRAM_MEMORY_REFUSED);
    guest_say(&g, PROGRAM_MEMORY, 0, UINT64_C(1) << 50, "");
    assert_int_equal(guest_hear(&g), PROGRAM_MEMORY_REFUSED);
    GUEST_SAYS(g.m.text, "that programs can share with the daemon");
    guest_say(&g, PROGRAM_MEMORY, 0, 0, "");
    assert_int_equal(guest_hear(&g), PROGRAM_MEMORY_REFUSED);
    assert_int_equal(g.m.code, ERROR_USAGE);
    guest_close(&g);
    guest_expect_service(0);
}

GUEST_TEST(test_memory_messages)
{
    static const struct {
        uint32_t kind, number;
        const char *said;
    } wrong[] = {{PROGRAM_MEMORY_READY, 1, "not requested"},
                 {PROGRAM_MEMORY_FREE, 1, "does not have"},
                 {PROGRAM_MEMORY_FREE, 0, "does not have"},
                 {PROGRAM_MEMORY_FREE, UINT32_MAX, "does not"},
                 {PROGRAM_MEMORY_FREE, 1025, "does not have"}};
    struct guest g;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        guest_open(&g, "wrong");
        guest_say(&g, wrong[i].kind, wrong[i].number, 0, "");
        guest_expect_refusal(&g, ERROR_PROTOCOL, wrong[i].said);
        guest_close(&g);
        programs_await_groups(&guest_daemon, 0);
    }
    guest_open(&g, "wrong");
    guest_say(&g, PROGRAM_MEMORY, 0, 4096, "");
    guest_say(&g, PROGRAM_MEMORY, 0, 4096, "");
    guest_expect_refusal(&g, ERROR_PROTOCOL, "two memories");
    (void)close(g.descriptor[0]);
    g.descriptor[0] = -1;
    guest_close(&g);
    guest_expect_service(0);
}

GUEST_TEST(test_many_memories)
{
    uint8_t *data;
    struct guest g;
    int page;

    guest_open(&g, "many");
    page = g.descriptor[0];
    for (uint32_t i = 1; i <= PROGRAM_MEMORIES; i++) {
        assert_int_equal(guest_share(&g, 4096, &data), i);
        (void)munmap(data, 4096);
    }
    guest_say(&g, PROGRAM_MEMORY, 0, 4096, "");
    assert_int_equal(guest_hear(&g), PROGRAM_MEMORY_REFUSED);
    GUEST_SAYS(g.m.text, "at most 1024");
    guest_say(&g, PROGRAM_MEMORY_FREE, 77, 0, "");
    assert_int_equal(guest_share(&g, 100, &data), 77);
    (void)munmap(data, 100);
    g.descriptor[0] = page;
    guest_close(&g);
    guest_expect_service(0);
}

static void read_total(struct programs_fixture *f, void *argument)
{
    *(uint64_t *)argument = shares_total(f->shares, SHARE_PROGRAM_MEMORY);
}

GUEST_TEST(test_freed_memory_counts_no_more)
{
    uint64_t one, total;
    uint8_t *data;
    struct guest g;
    int page;

    guest_open(&g, "freed");
    page = g.descriptor[0];
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(guest_share(&g, 4096, &data), 1);
        (void)munmap(data, 4096);
        programs_do(&guest_daemon, read_total, i == 0 ? &one : &total);
        guest_say(&g, PROGRAM_MEMORY_FREE, 1, 0, "");
    }
    assert_true(one >= 4096 && total == one);
    g.descriptor[0] = page;
    guest_close(&g);
    guest_expect_service(0);
}

static void leave_with_an_answer_unread(struct programs_fixture *f, void *argument)
{
    struct guest *g = argument;

    guest_say(g, PROGRAM_LEAVE, 0, 0, "");
    guest_close(g);
}

/* The kernel reports the loss of the answer before the last message. The daemon's thread waits meanwhile, so that it
 * finds both at once. */
GUEST_TEST(test_leaving_with_an_answer_unread)
{
    struct pollfd answered = {.events = POLLIN};
    struct guest g;

    guest_open(&g, "unread");
    guest_say(&g, PROGRAM_MEMORY, 0, 4096, "");
    answered.fd = g.fd;
    assert_int_equal(poll(&answered, 1, -1), 1);
    programs_do(&guest_daemon, leave_with_an_answer_unread, &g);
    programs_await_groups(&guest_daemon, 0);
    assert_int_equal(guest_daemon.groups.closed, 1);
    assert_int_equal(guest_daemon.groups.abandoned, 0);
    guest_expect_service(0);
}
