/* The socket of programs, and programs that do not keep to its rules: they get an error, and nobody
 * else notices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/program.h"
#include "tests/unit/programs_fixture.h"

static struct programs_fixture daemon_;

static int begin(void **state)
{
    (void)state;
    programs_start(&daemon_, "2x3", 4);
    return 0;
}

static int end(void **state)
{
    (void)state;
    programs_stop(&daemon_);
    return 0;
}

/* ---- A program ------------------------------------------------------------------------------- */

struct guest {
    int fd, descriptor[PROGRAM_FDS];
    struct program_page *page;
    struct program_message m; /* the last one */
};

static void connect_guest(struct guest *g)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    *g = (struct guest){.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
    strncpy(address.sun_path, daemon_.path, sizeof address.sun_path - 1);
    assert_int_equal(connect(g->fd, (struct sockaddr *)&address, sizeof address), 0);
}

static struct program_message message(uint32_t kind, uint32_t number, uint64_t size)
{
    return (struct program_message){.magic = PROGRAM_MAGIC,
                                    .version = PROGRAM_VERSION,
                                    .kind = kind,
                                    .number = number,
                                    .size = size};
}

static void say(struct guest *g, uint32_t kind, uint32_t number, uint64_t size, const char *text)
{
    struct program_message m = message(kind, number, size);

    (void)snprintf(m.text, sizeof m.text, "%s", text);
    assert_int_equal(send(g->fd, &m, sizeof m, MSG_NOSIGNAL), sizeof m);
}

/* The kind of the next message, with its descriptors, or 0 at the end. */
static uint32_t hear(struct guest *g)
{
    char room[CMSG_SPACE(PROGRAM_FDS * sizeof(int))] __attribute__((aligned(8)));
    struct iovec bytes = {&g->m, sizeof g->m};
    struct msghdr m = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    ssize_t n = recvmsg(g->fd, &m, 0);

    if (n < 0 && errno == ECONNRESET)
        n = recvmsg(g->fd, &m, 0);
    if (n <= 0)
        return 0;
    assert_int_equal(n, sizeof g->m);
    if (m.msg_controllen > 0)
        memcpy(g->descriptor, CMSG_DATA(CMSG_FIRSTHDR(&m)),
               CMSG_FIRSTHDR(&m)->cmsg_len - CMSG_LEN(0));
    return g->m.kind;
}

static void open_guest(struct guest *g, const char *name)
{
    connect_guest(g);
    say(g, PROGRAM_OPEN, 0, 0, name);
    assert_int_equal(hear(g), PROGRAM_OPENED);
    g->page = mmap(NULL, sizeof *g->page, PROT_READ | PROT_WRITE, MAP_SHARED, g->descriptor[0], 0);
    assert_ptr_not_equal(g->page, MAP_FAILED);
}

static void close_guest(struct guest *g)
{
    (void)close(g->fd);
    if (g->page == NULL)
        return;
    (void)munmap(g->page, sizeof *g->page);
    for (unsigned i = 0; i < PROGRAM_FDS; i++)
        (void)close(g->descriptor[i]);
}

static void ring(struct guest *g)
{
    uint64_t one = 1;

    atomic_store(&g->page->rung, 1);
    assert_int_equal(write(g->descriptor[PROGRAM_FD_DOORBELL], &one, sizeof one), sizeof one);
}

/* Makes a call, and waits for its end. Returns its code; the text is in g->m.text. */
static uint32_t call(struct guest *g, const struct program_request *request)
{
    uint32_t number = atomic_load(&g->page->submitted);
    struct program_slot *slot = &g->page->slot[number % PROGRAM_CALLS];

    slot->request = *request;
    atomic_store(&g->page->submitted, number + 1);
    ring(g);
    while (atomic_load(&slot->ended) != number + 1)
        (void)sched_yield();
    memcpy(g->m.text, slot->outcome.text, sizeof g->m.text);
    return slot->outcome.code;
}

/* A memory of that size. Returns its number. */
static uint32_t share(struct guest *g, uint64_t size, uint8_t **data)
{
    uint32_t number;

    say(g, PROGRAM_MEMORY, 0, size, "");
    assert_int_equal(hear(g), PROGRAM_FILE);
    number = g->m.number;
    assert_int_equal(fallocate(g->descriptor[0], 0, 0, (off_t)size), 0);
    *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, g->descriptor[0], 0);
    assert_ptr_not_equal(*data, MAP_FAILED);
    (void)close(g->descriptor[0]);
    say(g, PROGRAM_MEMORY_READY, number, 0, "");
    assert_int_equal(hear(g), PROGRAM_MEMORY_TAKEN);
    return number;
}

#define SAYS(text, wanted)                                                                         \
    do {                                                                                           \
        if (strstr((text), (wanted)) == NULL)                                                      \
            fail_msg("\"%s\" does not say \"%s\"", (text), (wanted));                              \
    } while (0)

/* It is told that it breaks the rules, and closed; its group, if any, fails for that reason. */
static void expect_refusal(struct guest *g, uint32_t code, const char *said)
{
    uint32_t kind;

    while ((kind = hear(g)) != PROGRAM_ERROR)
        assert_int_not_equal(kind, 0);
    assert_int_equal(g->m.code, code);
    SAYS(g->m.text, said);
    assert_int_equal(hear(g), 0);
}

/* Others are served as before, and nothing is left of those who were not. */
static void expect_service(unsigned groups)
{
    const struct program_request barrier = {.operation = GROUP_BARRIER, .part = 3};
    struct guest g;

    open_guest(&g, "honest");
    assert_int_equal(call(&g, &barrier), 0);
    say(&g, PROGRAM_LEAVE, 0, 0, "");
    assert_int_equal(hear(&g), 0);
    close_guest(&g);
    programs_await_groups(&daemon_, groups);
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void test_wrong_messages(void **state)
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
         ERROR_PROTOCOL, "does not belong here"},
        {PROGRAM_MAGIC, PROGRAM_VERSION, PROGRAM_LEAVE, sizeof(struct program_message),
         ERROR_PROTOCOL, "does not belong here"},
        {PROGRAM_MAGIC, PROGRAM_VERSION, 4711, sizeof(struct program_message), ERROR_PROTOCOL,
         "does not belong here"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct program_message m = {
            .magic = wrong[i].magic, .version = wrong[i].version, .kind = wrong[i].kind};
        struct guest g;
        connect_guest(&g);
        assert_int_equal(send(g.fd, &m, wrong[i].size, 0), wrong[i].size);
        expect_refusal(&g, wrong[i].code, wrong[i].said);
        close_guest(&g);
    }
    expect_service(0);
}

static void test_names(void **state)
{
    static const char *const unclean[] = {"\xe4", "one\n"};
    struct program_message m = message(PROGRAM_OPEN, 0, 0);
    char name[80];
    struct guest g, other;

    (void)state;
    memset(name, 'x', sizeof name);
    name[64] = '\0';
    connect_guest(&g);
    say(&g, PROGRAM_OPEN, 0, 0, name);
    expect_refusal(&g, ERROR_USAGE, "1 to 63 bytes, and not 64");
    close_guest(&g);
    connect_guest(&g);
    say(&g, PROGRAM_OPEN, 0, 0, "");
    expect_refusal(&g, ERROR_USAGE, "and not 0");
    close_guest(&g);
    connect_guest(&g);
    memset(m.text, 'x', sizeof m.text);
    assert_int_equal(send(g.fd, &m, sizeof m, 0), sizeof m);
    expect_refusal(&g, ERROR_PROTOCOL, "without an end");
    close_guest(&g);
    for (size_t i = 0; i < sizeof unclean / sizeof *unclean; i++) {
        connect_guest(&g);
        say(&g, PROGRAM_OPEN, 0, 0, unclean[i]);
        assert_int_equal(hear(&g), PROGRAM_ERROR);
        assert_int_equal(g.m.code, ERROR_USAGE);
        SAYS(g.m.text, "UTF-8 without control characters");
        close_guest(&g);
    }
    open_guest(&g, "\xc3\xa4");
    close_guest(&g);
    open_guest(&g, "one");
    connect_guest(&other);
    say(&other, PROGRAM_OPEN, 0, 0, "one");
    expect_refusal(&other, ERROR_REFUSED, "\"one\" open");
    close_guest(&other);
    programs_await_groups(&daemon_, 1);
    close_guest(&g);
    expect_service(0);
}

/* Which nodes are left out comes first, in as many messages as that takes. */
static void test_shrinking(void **state)
{
    static bool gone[6] = {[0] = true, [3] = true};
    struct guest g;

    (void)state;
    connect_guest(&g);
    say(&g, PROGRAM_SHRINK, 0, 0, "shrunk");
    assert_int_equal(hear(&g), PROGRAM_OPENED); /* nobody is missing */
    close_guest(&g);
    programs_await_groups(&daemon_, 0);
    daemon_.groups.gone = gone;
    connect_guest(&g);
    say(&g, PROGRAM_SHRINK, 0, 0, "shrunk");
    assert_int_equal(hear(&g), PROGRAM_MISSING);
    assert_string_equal(g.m.text, "0 3 ");
    assert_int_equal(hear(&g), PROGRAM_OPENED);
    daemon_.groups.gone = NULL;
    close_guest(&g);
    expect_service(0);
}

static void say_flags(struct guest *g, uint32_t flags, const char *name)
{
    struct program_message m = message(PROGRAM_OPEN, 0, 0);

    m.flags = flags;
    (void)snprintf(m.text, sizeof m.text, "%s", name);
    assert_int_equal(send(g->fd, &m, sizeof m, MSG_NOSIGNAL), sizeof m);
}

struct absent {
    uint32_t count;
    const char *list;
};

/* Until nobody is absent. */
static void hold_open(struct programs_fixture *f, void *argument)
{
    const struct absent *absent = argument;

    f->groups.holds_open = absent != NULL;
    f->groups.missing = absent != NULL ? absent->list : NULL;
    f->groups.missing_count = absent != NULL ? absent->count : 0;
}

/* Who asks for it is told which nodes it waits for, and again when that has changed; who does not is not. */
static void test_waiting_for_others(void **state)
{
    struct absent both = {2, "3, 5"}, one = {1, "5"};
    struct guest g, silent;

    (void)state;
    programs_do(&daemon_, hold_open, &both);
    connect_guest(&silent);
    say_flags(&silent, 0, "silent");
    connect_guest(&g);
    say_flags(&g, PROGRAM_TELL, "told");
    assert_int_equal(hear(&g), PROGRAM_WAITING);
    assert_int_equal(g.m.number, 2);
    assert_string_equal(g.m.text, "3, 5");
    programs_do(&daemon_, hold_open, &one);
    assert_int_equal(hear(&g), PROGRAM_WAITING);
    assert_int_equal(g.m.number, 1);
    assert_string_equal(g.m.text, "5");
    programs_do(&daemon_, hold_open, NULL);
    assert_int_equal(hear(&silent), PROGRAM_OPENED);
    while (hear(&g) == PROGRAM_WAITING)
        ;
    assert_int_equal(g.m.kind, PROGRAM_OPENED);
    close_guest(&silent);
    close_guest(&g);
    expect_service(0);
}

static void test_opening_twice(void **state)
{
    struct guest g;

    (void)state;
    open_guest(&g, "twice");
    say(&g, PROGRAM_OPEN, 0, 0, "again");
    expect_refusal(&g, ERROR_PROTOCOL, "does not belong here");
    SAYS(g.page->failure.text, "does not belong here");
    close_guest(&g);
    expect_service(0);
    SAYS(daemon_.groups.why.text, "program of node 4 has sent");
}

/* None of the descriptors stays at the daemon, whatever they are. */
static void test_descriptors_in_messages(void **state)
{
    int fd[64], pair[2];
    struct program_message m = message(PROGRAM_OPEN, 0, 0);
    char room[CMSG_SPACE(sizeof fd)] __attribute__((aligned(8))) = {0};
    unsigned before = programs_descriptors();

    (void)state;
    (void)strcpy(m.text, "x");
    for (unsigned count = 1; count <= 64; count *= 8) {
        struct iovec bytes = {&m, sizeof m};
        struct msghdr h = {.msg_iov = &bytes,
                           .msg_iovlen = 1,
                           .msg_control = room,
                           .msg_controllen = CMSG_SPACE(count * sizeof *fd)};
        struct guest g;
        assert_int_equal(pipe(pair), 0);
        connect_guest(&g);
        for (unsigned i = 0; i < count; i++)
            fd[i] = pair[1];
        *CMSG_FIRSTHDR(&h) = (struct cmsghdr){CMSG_LEN(count * sizeof *fd), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), fd, count * sizeof *fd);
        if (sendmsg(g.fd, &h, MSG_NOSIGNAL) == (ssize_t)sizeof m)
            expect_refusal(&g, ERROR_PROTOCOL, "with descriptors");
        else
            assert_int_equal(errno, EPERM); /* the kernel does not pass them on */
        close_guest(&g);
        (void)close(pair[1]);
        struct pollfd p = {pair[0], POLLIN, 0};
        assert_int_equal(poll(&p, 1, -1), 1); /* nobody can write any more */
        (void)close(pair[0]);
    }
    expect_service(0);
    assert_int_equal(programs_descriptors(), before);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void test_memory_files(void **state)
{
    struct guest g;
    struct stat st;
    int fd;

    (void)state;
    open_guest(&g, "files");
    for (unsigned i = 0; i < 2; i++) {
        if (i == 1) {
            int kept = g.descriptor[0];
            say(&g, PROGRAM_MEMORY, 0, 8192, "");
            assert_int_equal(hear(&g), PROGRAM_FILE);
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
    say(&g, PROGRAM_MEMORY_READY, g.m.number, 0, "");
    assert_int_equal(hear(&g), PROGRAM_MEMORY_REFUSED);
    assert_int_equal(g.m.code, ERROR_MEMORY);
    SAYS(g.m.text, "only 0 are allocated");
    (void)close(fd);
    say(&g, PROGRAM_MEMORY, 0, UINT64_MAX, "");
    assert_int_equal(hear(&g), PROGRAM_MEMORY_REFUSED);
    say(&g, PROGRAM_MEMORY, 0, UINT64_C(1) << 50, "");
    assert_int_equal(hear(&g), PROGRAM_MEMORY_REFUSED);
    SAYS(g.m.text, "that programs can share with the daemon");
    say(&g, PROGRAM_MEMORY, 0, 0, "");
    assert_int_equal(hear(&g), PROGRAM_MEMORY_REFUSED);
    assert_int_equal(g.m.code, ERROR_USAGE);
    close_guest(&g);
    expect_service(0);
}

static void test_memory_messages(void **state)
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

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        open_guest(&g, "wrong");
        say(&g, wrong[i].kind, wrong[i].number, 0, "");
        expect_refusal(&g, ERROR_PROTOCOL, wrong[i].said);
        close_guest(&g);
        programs_await_groups(&daemon_, 0);
    }
    open_guest(&g, "wrong");
    say(&g, PROGRAM_MEMORY, 0, 4096, "");
    say(&g, PROGRAM_MEMORY, 0, 4096, "");
    expect_refusal(&g, ERROR_PROTOCOL, "two memories");
    (void)close(g.descriptor[0]);
    g.descriptor[0] = -1;
    close_guest(&g);
    expect_service(0);
}

static void test_many_memories(void **state)
{
    uint8_t *data;
    struct guest g;
    int page;

    (void)state;
    open_guest(&g, "many");
    page = g.descriptor[0];
    for (uint32_t i = 1; i <= PROGRAM_MEMORIES; i++) {
        assert_int_equal(share(&g, 4096, &data), i);
        (void)munmap(data, 4096);
    }
    say(&g, PROGRAM_MEMORY, 0, 4096, "");
    assert_int_equal(hear(&g), PROGRAM_MEMORY_REFUSED);
    SAYS(g.m.text, "at most 1024");
    say(&g, PROGRAM_MEMORY_FREE, 77, 0, "");
    assert_int_equal(share(&g, 100, &data), 77);
    (void)munmap(data, 100);
    g.descriptor[0] = page;
    close_guest(&g);
    expect_service(0);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void test_wrong_calls(void **state)
{
    struct guest g;
    uint8_t *data;
    uint32_t number;
    int page;

    (void)state;
    open_guest(&g, "calls");
    page = g.descriptor[0];
    number = share(&g, 4096, &data);
    g.descriptor[0] = page;
    const struct program_request good = {.operation = GROUP_ALLTOALL,
                                         .part = 3,
                                         .size = 100,
                                         .send_memory = number,
                                         .send_size = 600,
                                         .receive_memory = number,
                                         .receive_offset = 3496,
                                         .receive_size = 600};
    const struct program_request counts = {.operation = GROUP_ALLTOALLV,
                                           .part = 3,
                                           .send_memory = number,
                                           .send_size = 1000,
                                           .receive_memory = number,
                                           .receive_size = 1000,
                                           .counts_memory = number,
                                           .counts_offset = 4096 - 4 * 6 * 8};
    struct {
        struct program_request r;
        const char *said;
    } wrong[16] = {{.r = good}};
    unsigned n = 0;
#define WRONG(from, field, value, text)                                                            \
    do {                                                                                           \
        wrong[n].r = (from);                                                                       \
        wrong[n].r.field = (value);                                                                \
        wrong[n++].said = (text);                                                                  \
    } while (0)
    WRONG(good, receive_offset, 3497, "do not lie in shared memory");
    WRONG(good, receive_offset, UINT64_MAX, "do not lie");
    WRONG(good, send_offset, UINT64_MAX - 10, "do not lie");
    WRONG(good, send_size, UINT64_MAX, "do not lie");
    WRONG(good, send_memory, 2, "no shared memory 2");
    WRONG(good, send_memory, 0, "no shared memory 0");
    WRONG(good, receive_memory, UINT32_MAX, "no shared memory");
    WRONG(good, operation, 0, "operation 0");
    WRONG(good, operation, UINT32_MAX, "operation 4294967295");
    WRONG(good, part, 0, "no part");
    WRONG(good, part, 4, "no part with dimensions 0x4");
    WRONG(good, part, UINT32_MAX, "no part");
    WRONG(counts, counts_offset, 4096 - 4 * 6 * 8 + 1, "do not lie");
    WRONG(counts, counts_offset, UINT64_MAX - 7, "do not lie");
    WRONG(counts, counts_memory, 0, "no shared memory 0");
    WRONG(counts, counts_memory, 9, "no shared memory 9");
    memset(data, 0, 4096);
    assert_int_equal(call(&g, &good), 0);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(call(&g, &wrong[i].r), ERROR_USAGE);
        SAYS(g.m.text, wrong[i].said);
    }
    assert_int_equal(call(&g, &counts), 0);
    memset(data + 4096 - 4 * 6 * 8, 0xff, 4 * 6 * 8);
    assert_int_equal(call(&g, &counts), ERROR_USAGE);
    assert_int_equal(daemon_.groups.calls, 2);
    assert_int_equal(call(&g, &good), 0); /* and it can go on */
    (void)munmap(data, 4096);
    close_guest(&g);
    expect_service(0);
}

static void test_ring_that_jumps(void **state)
{
    static const uint32_t to[] = {65, 1000, UINT32_MAX, UINT32_C(1) << 31};

    (void)state;
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        struct guest g;
        open_guest(&g, "jumps");
        atomic_store(&g.page->submitted, to[i]);
        ring(&g);
        expect_refusal(&g, ERROR_PROTOCOL, "more calls than there is room for");
        close_guest(&g);
        programs_await_groups(&daemon_, 0);
    }
    expect_service(0);
}

/* The doorbell stays with the program. */
static void test_ring_after_the_end(void **state)
{
    struct guest g;

    (void)state;
    open_guest(&g, "late");
    say(&g, PROGRAM_LEAVE, 0, 0, "");
    assert_int_equal(hear(&g), 0);
    expect_service(0); /* it has been freed */
    for (unsigned i = 0; i < 10; i++) {
        ring(&g);
        expect_service(0);
    }
    close_guest(&g);
}

static void test_slot_in_use(void **state)
{
    struct guest g;

    (void)state;
    open_guest(&g, "slots");
    programs_hold(&daemon_, true);
    for (unsigned i = 0; i < PROGRAM_CALLS; i++)
        g.page->slot[i].request = (struct program_request){.operation = GROUP_BARRIER, .part = 3};
    atomic_store(&g.page->submitted, PROGRAM_CALLS);
    ring(&g);
    while (atomic_load(&g.page->rung) != 0)
        (void)sched_yield();
    programs_hold(&daemon_, true); /* has been looked at */
    atomic_store(&g.page->submitted, PROGRAM_CALLS + 1);
    ring(&g);
    expect_refusal(&g, ERROR_PROTOCOL, "in the place of one that has not ended");
    close_guest(&g);
    programs_hold(&daemon_, false);
    expect_service(0);
}

struct scribbler {
    struct guest *guest;
    uint8_t *data;
    _Atomic bool stop;
};

/* Writes to requests and arrays all the time, mostly small numbers. */
static void *scribble(void *context)
{
    struct scribbler *s = context;
    uint32_t state = 1;

    while (!atomic_load(&s->stop))
        for (unsigned i = 0; i < PROGRAM_CALLS; i++) {
            volatile uint32_t *word = (volatile uint32_t *)&s->guest->page->slot[i].request;
            state = state * 1664525 + 1013904223;
            word[state >> 8 & 15] = state % 3 == 0 ? state : state >> 29;
            *(volatile uint32_t *)(s->data + (state >> 20 & 0x3ffc) % 4096) = state >> 22;
        }
    return NULL;
}

static void test_page_that_changes(void **state)
{
    struct scribbler s = {0};
    struct guest g;
    pthread_t thread;
    uint32_t number, failed = 0;
    int page;

    (void)state;
    open_guest(&g, "changes");
    page = g.descriptor[0];
    number = share(&g, 4096, &s.data);
    g.descriptor[0] = page;
    s.guest = &g;
    assert_int_equal(pthread_create(&thread, NULL, scribble, &s), 0);
    for (uint32_t k = 0; k < 5000; k++) {
        const struct program_request request = {.operation = 1 + k % (GROUP_OPERATIONS - 1),
                                                .part = 1 + k % 3,
                                                .type = 1,
                                                .operator= 1,
                                                .size = k % 100,
                                                .send_memory = number,
                                                .send_size = k % 100 * 6,
                                                .receive_memory = number,
                                                .receive_offset = 2000,
                                                .receive_size = k % 100 * 6,
                                                .counts_memory = number};
        failed += call(&g, &request) != 0;
    }
    atomic_store(&s.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_in_range(failed, 1, 4999);
    (void)munmap(s.data, 4096);
    close_guest(&g);
    expect_service(0);
}

/* What belongs to both sides of the doorbell: the program can make writing to it, or reading from it,
 * wait for ever. */
static void test_doorbell_that_blocks(void **state)
{
    const struct program_request barrier = {.operation = GROUP_BARRIER, .part = 3};
    uint64_t most = UINT64_MAX - 1;
    struct guest g;
    int fd;

    (void)state;
    open_guest(&g, "blocks");
    fd = g.descriptor[PROGRAM_FD_DOORBELL];
    assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
    assert_int_equal(fcntl(g.descriptor[PROGRAM_FD_NOTICES], F_SETFL, 0), 0);
    assert_int_equal(call(&g, &barrier), 0);
    assert_int_equal(read(fd, &most, sizeof most), sizeof most);
    most = UINT64_MAX - 2;
    assert_int_equal(write(fd, &most, sizeof most), sizeof most);
    say(&g, PROGRAM_NOTICE, 0, 0, "");
    for (unsigned i = 0; i < 2000; i++) { /* notices that nobody reads */
        atomic_store(&g.page->noticed, 0);
        say(&g, PROGRAM_NOTICE, 0, 0, "");
    }
    expect_service(1);
    close_guest(&g);
    expect_service(0);
}

/* ---- Many ------------------------------------------------------------------------------------ */

static void test_ten_thousand_opens(void **state)
{
    struct guest g[40], more;
    char name[16];

    (void)state;
    for (unsigned i = 0; i < 32; i++) {
        (void)snprintf(name, sizeof name, "g%u", i);
        open_guest(&g[i], name);
    }
    for (unsigned i = 0; i < 10000; i++) {
        struct program_message m = message(PROGRAM_OPEN, 0, 0);
        (void)snprintf(m.text, sizeof m.text, "more");
        connect_guest(&more);
        (void)send(more.fd, &m, sizeof m, MSG_NOSIGNAL); /* it may have been refused already */
        expect_refusal(&more, ERROR_BUSY, "a process can have at most 32");
        close_guest(&more);
    }
    for (unsigned i = 32; i < 40; i++)
        connect_guest(&g[i]); /* silent */
    for (unsigned i = 0; i < 1000; i++) {
        connect_guest(&more);
        expect_refusal(&more, ERROR_BUSY, "a process can have at most 32");
        close_guest(&more);
    }
    assert_int_equal(call(&g[31], &(struct program_request){.operation = GROUP_BARRIER, .part = 3}),
                     0);
    if (fork() == 0) { /* another process can */
        connect_guest(&more);
        say(&more, PROGRAM_OPEN, 0, 0, "another");
        _exit(hear(&more) == PROGRAM_OPENED ? 0 : 1);
    }
    int status;
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
    for (unsigned i = 0; i < 40; i++)
        close_guest(&g[i]);
    open_guest(&more, "g31"); /* at once */
    close_guest(&more);
    expect_service(0);
}

static void many_strangers(struct programs_fixture *f, void *argument)
{
    (void)f;
    *(uint64_t *)argument = uv_now(&f->loop);
}

/* One that is stopped while calls end, and notices and answers are sent. */
static void test_stopped(void **state)
{
    struct guest g;
    uint64_t now;

    (void)state;
    open_guest(&g, "stopped");
    say(&g, PROGRAM_NOTICE, 0, 0, "");
    for (unsigned i = 0; i < PROGRAM_CALLS; i++)
        g.page->slot[i].request = (struct program_request){.operation = GROUP_BARRIER, .part = 3};
    atomic_store(&g.page->submitted, PROGRAM_CALLS);
    ring(&g); /* and does nothing any more */
    programs_do(&daemon_, many_strangers, &now);
    expect_service(1);
    while (atomic_load(&g.page->ended) != PROGRAM_CALLS)
        (void)sched_yield();
    close_guest(&g);
    expect_service(0);
}

/* It asks, and never reads: it is closed when there is no room for answers. */
static void test_answers_not_read(void **state)
{
    struct guest g;
    unsigned sent = 0;

    (void)state;
    open_guest(&g, "deaf");
    for (;; sent++) {
        struct program_message m = message(PROGRAM_MEMORY, 0, 0);
        struct pollfd p = {g.fd, POLLOUT, 0};
        if (send(g.fd, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
            break;
        assert_int_equal(poll(&p, 1, -1), 1);
    }
    assert_true(sent > 1);
    close_guest(&g);
    expect_service(0);
    SAYS(daemon_.groups.why.text, "does not read");
}

static void die_after_asking(struct programs_fixture *f, void *argument)
{
    struct guest *g = argument;

    (void)f;
    say(g, PROGRAM_MEMORY, 0, 4096, "");
    close_guest(g);
}

/* It asks, and is gone before the answer: it has died, and has broken no rule. */
static void test_death_before_an_answer(void **state)
{
    struct guest g;

    (void)state;
    open_guest(&g, "dead");
    programs_do(&daemon_, die_after_asking, &g);
    programs_await_groups(&daemon_, 0);
    SAYS(daemon_.groups.why.text, "the program of node 4 has died");
    expect_service(0);
}

/* A program that has closed descriptors that it did not know learns by the page that its group has failed,
 * before it writes into what has taken the place of its doorbell. */
static void test_connection_closed_by_mistake(void **state)
{
    struct guest g;

    (void)state;
    open_guest(&g, "closed");
    (void)shutdown(g.fd, SHUT_RDWR);
    programs_await_groups(&daemon_, 0);
    expect_service(0);
    assert_int_equal(atomic_load(&g.page->failed), 1);
    assert_int_equal(g.page->failure.code, ERROR_CANCELLED);
    SAYS(g.page->failure.text, "the program of node 4 has died, or has ended without closing");
    close_guest(&g);
}

static void test_no_descriptor_stays(void **state)
{
    struct guest g;
    uint8_t *data;
    unsigned before = programs_descriptors();
    int page;

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        open_guest(&g, "leaks");
        page = g.descriptor[0];
        if (i % 3 != 0) {
            (void)share(&g, 4096, &data);
            (void)munmap(data, 4096);
        }
        if (i % 4 == 0) {
            say(&g, PROGRAM_MEMORY, 0, 4096, "");
            if (i % 8 == 0) {
                assert_int_equal(hear(&g), PROGRAM_FILE);
                (void)close(g.descriptor[0]);
            }
        }
        g.descriptor[0] = page;
        if (i % 5 == 0)
            say(&g, PROGRAM_LEAVE, 0, 0, "");
        close_guest(&g);
        programs_await_groups(&daemon_, 0);
    }
    expect_service(0);
    assert_int_equal(programs_descriptors(), before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_wrong_messages),
        TEST(test_names),
        TEST(test_shrinking),
        TEST(test_waiting_for_others),
        TEST(test_opening_twice),
        TEST(test_descriptors_in_messages),
        TEST(test_memory_files),
        TEST(test_memory_messages),
        TEST(test_many_memories),
        TEST(test_wrong_calls),
        TEST(test_ring_that_jumps),
        TEST(test_ring_after_the_end),
        TEST(test_slot_in_use),
        TEST(test_page_that_changes),
        TEST(test_doorbell_that_blocks),
        TEST(test_ten_thousand_opens),
        TEST(test_stopped),
        TEST(test_answers_not_read),
        TEST(test_death_before_an_answer),
        TEST(test_connection_closed_by_mistake),
        TEST(test_no_descriptor_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
