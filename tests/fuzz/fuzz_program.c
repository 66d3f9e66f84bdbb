/* Programs that send anything to the daemon's socket and write anything to the memory that they share with it.
 * The groups are a stand-in. Input: operations, a byte with the kind, and its arguments.
 *
 * Invariants: an honest program is served before and after, and the others leave no group, descriptor or
 * memory behind. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/program/server.h"
#include "proto/program.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/standin_group.h"

#define GUESTS 4u
#define MEMORY 4096u
#define MEMORIES 4u
#define TURNS 100u /* runs of the loop until everything sent has been read */

enum action { MESSAGE, RAW, PAGE, RING, TURN, CALL, GROUPS, SHARED, CLOSE, ACTIONS };

struct guest {
    int fd; /* -1: not connected */
    int descriptor[PROGRAM_FDS];
    struct program_page *page;
    uint8_t *memory[MEMORIES];
    uint32_t memories;
};

static struct {
    uv_loop_t loop;
    struct programs *programs;
    struct shares *shares;
    struct groups groups;
    char path[64];
    struct guest guest[GUESTS];
    int lowest; /* descriptor that was free at the start */
} world;

static void turn(void)
{
    for (unsigned i = 0; i < 3; i++) { /* accepted, read, answered */
        (void)uv_run(&world.loop, UV_RUN_NOWAIT);
        standin_run(&world.groups);
    }
}

/* ---- Guests ---------------------------------------------------------------------------------- */

static void connect_guest(struct guest *g)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memset(g, 0, sizeof *g);
    g->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s.programs", world.path);
    REQUIRE(g->fd >= 0);
    if (connect(g->fd, (struct sockaddr *)&address, sizeof address) == 0)
        return;
    REQUIRE(errno == EAGAIN); /* the queue is full */
    turn();
    REQUIRE(connect(g->fd, (struct sockaddr *)&address, sizeof address) == 0);
}

static void close_guest(struct guest *g)
{
    if (g->fd < 0)
        return;
    (void)close(g->fd);
    if (g->page != NULL) {
        (void)munmap(g->page, sizeof *g->page);
        for (unsigned i = 0; i < PROGRAM_FDS; i++)
            (void)close(g->descriptor[i]);
    }
    for (uint32_t i = 0; i < g->memories; i++)
        (void)munmap(g->memory[i], MEMORY);
    g->fd = -1;
}

static struct program_message message(uint32_t kind, uint32_t number)
{
    return (struct program_message){
        .magic = PROGRAM_MAGIC, .version = PROGRAM_VERSION, .kind = kind, .number = number};
}

static void take_file(struct guest *g, const struct program_message *m, int fd)
{
    struct program_message ready = message(PROGRAM_MEMORY_READY, m->number);

    if (g->memories < MEMORIES && fallocate(fd, 0, 0, MEMORY) == 0) {
        uint8_t *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        REQUIRE(memory != MAP_FAILED);
        g->memory[g->memories++] = memory;
        (void)send(g->fd, &ready, sizeof ready, MSG_NOSIGNAL);
    }
    (void)close(fd);
}

/* Reads the daemon's replies, which must be well formed. */
static void hear(struct guest *g)
{
    struct program_message m;
    char room[CMSG_SPACE(PROGRAM_FDS * sizeof(int))] __attribute__((aligned(8)));

    for (;;) {
        struct iovec bytes = {&m, sizeof m};
        struct msghdr h = {
            .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
        int fd[PROGRAM_FDS];
        ssize_t n = recvmsg(g->fd, &h, 0);
        if (n <= 0)
            return;
        REQUIRE(n == (ssize_t)sizeof m && m.magic == PROGRAM_MAGIC);
        REQUIRE(memchr(m.text, 0, sizeof m.text) != NULL);
        if (h.msg_controllen > 0)
            memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), CMSG_FIRSTHDR(&h)->cmsg_len - CMSG_LEN(0));
        if (m.kind == PROGRAM_OPENED) {
            REQUIRE(g->page == NULL);
            memcpy(g->descriptor, fd, sizeof fd);
            g->page = mmap(NULL, sizeof *g->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd[0], 0);
            REQUIRE(g->page != MAP_FAILED);
        } else if (m.kind == PROGRAM_FILE) {
            take_file(g, &m, fd[0]);
        }
    }
}

static void ring(struct guest *g)
{
    const uint64_t one = 1;

    if (g->page != NULL)
        REQUIRE(write(g->descriptor[PROGRAM_FD_DOORBELL], &one, sizeof one) == sizeof one);
}

/* An honest program is served as if it were alone. */
static void be_honest(void)
{
    struct program_message open = message(PROGRAM_OPEN, 0), leave = message(PROGRAM_LEAVE, 0);
    struct guest g;

    (void)strcpy(open.text, "honest");
    connect_guest(&g);
    REQUIRE(send(g.fd, &open, sizeof open, 0) == sizeof open);
    for (unsigned i = 0; i < 4 && g.page == NULL; i++) {
        turn();
        hear(&g);
    }
    REQUIRE(g.page != NULL);
    g.page->slot[0].request = (struct program_request){.operation = GROUP_BARRIER, .part = 3};
    atomic_store(&g.page->submitted, 1);
    ring(&g);
    turn();
    REQUIRE(atomic_load(&g.page->slot[0].ended) == 1 && g.page->slot[0].outcome.code == 0);
    REQUIRE(send(g.fd, &leave, sizeof leave, 0) == sizeof leave);
    close_guest(&g);
}

/* ---- Operations ------------------------------------------------------------------------------ */

static uint64_t input_number(struct input *in)
{
    uint8_t kind = input_byte(in);
    uint64_t value = input_byte(in);

    switch (kind % 8) {
    case 0:
        return value << (kind >> 3);
    case 1:
        return UINT64_MAX - value;
    case 2:
        return MEMORY - value;
    case 3:
        return value * 8;
    default:
        return value % 8;
    }
}

static void send_message(struct guest *g, struct input *in)
{
    struct program_message m = message(0, 0);

    m.kind = input_byte(in) % 16;
    m.number = (uint32_t)input_number(in);
    m.size = m.kind == PROGRAM_MEMORY && input_byte(in) % 8 != 0 ? MEMORY : input_number(in);
    if (input_byte(in) % 32 == 0)
        memset(m.text, 'x', sizeof m.text);
    else
        m.text[0] = (char)input_byte(in);
    (void)send(g->fd, &m, sizeof m, MSG_NOSIGNAL);
}

static void make_call(struct guest *g, struct input *in)
{
    struct program_slot *slot;
    struct program_request r = {0};
    uint32_t submitted;

    if (g->page == NULL)
        return;
    submitted = atomic_load(&g->page->submitted);
    slot = &g->page->slot[submitted % PROGRAM_CALLS];
    r.operation = input_byte(in) % 12;
    r.part = input_byte(in) % 5;
    r.in_place = input_byte(in) & 1;
    r.root = r.type = r.operator= input_byte(in);
    r.send_memory = input_byte(in) % 4;
    r.receive_memory = input_byte(in) % 4;
    r.counts_memory = input_byte(in) % 4;
    r.size = input_number(in);
    r.send_offset = input_number(in);
    r.send_size = input_byte(in) % 2 != 0 ? r.size * 6 : input_number(in);
    r.receive_offset = input_number(in);
    r.receive_size = input_byte(in) % 2 != 0 ? r.size * 6 : input_number(in);
    r.counts_offset = input_number(in);
    if (input_byte(in) % 8 != 0) /* otherwise the number is left out, or the call too late */
        r.number = submitted;
    slot->request = r;
    atomic_store(&g->page->submitted, submitted + 1);
    ring(g);
}

static void write_page(struct guest *g, struct input *in)
{
    size_t at = input_word16(in) % sizeof *g->page, length = 4;
    const uint8_t *bytes = input_bytes(in, &length);

    if (g->page != NULL && at + length <= sizeof *g->page)
        memcpy((uint8_t *)g->page + at, bytes, length);
}

static void write_memory(struct guest *g, struct input *in)
{
    uint32_t which = input_byte(in) % MEMORIES;
    size_t at = input_word16(in) % MEMORY;
    uint64_t value = input_number(in);

    if (which < g->memories && at + sizeof value <= MEMORY)
        memcpy(g->memory[which] + at, &value, sizeof value);
}

static void run_operation(struct input *in)
{
    uint8_t byte = input_byte(in);
    struct guest *g = &world.guest[byte >> 4 & (GUESTS - 1)];
    size_t length;

    if (g->fd < 0)
        connect_guest(g);
    switch ((enum action)((byte & 15) % ACTIONS)) {
    case MESSAGE:
        send_message(g, in);
        break;
    case RAW:
        length = input_word16(in) % 1000;
        const uint8_t *bytes = input_bytes(in, &length);
        (void)send(g->fd, bytes, length, MSG_NOSIGNAL);
        break;
    case PAGE:
        write_page(g, in);
        break;
    case RING:
        ring(g);
        break;
    case TURN:
        turn();
        hear(g);
        break;
    case CALL:
        make_call(g, in);
        break;
    case GROUPS:
        byte = input_byte(in);
        world.groups.holds = byte % 2 != 0;
        if (byte % 8 == 0)
            standin_fail(&world.groups, ERROR_LINK, "a link is down");
        break;
    case SHARED:
        write_memory(g, in);
        break;
    case CLOSE:
        close_guest(g);
        break;
    case ACTIONS:
        break;
    }
}

/* ---- The world ------------------------------------------------------------------------------- */

static int lowest_descriptor(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    REQUIRE(fd >= 0);
    (void)close(fd);
    return fd;
}

static void end_world(void)
{
    programs_close(world.programs);
    REQUIRE(uv_run(&world.loop, UV_RUN_DEFAULT) == 0);
    REQUIRE(uv_loop_close(&world.loop) == 0);
    shares_free(world.shares);
    world.path[strlen(world.path) - strlen("/sock")] = '\0';
    REQUIRE(rmdir(world.path) == 0);
}

static void begin_world(void)
{
    static const struct access_rules everybody;
    const struct programs_setup setup = {&world.loop, world.path, &world.groups, &everybody,
                                         world.shares = shares_new()};
    struct error e;

    log_set_level(LOG_LEVEL_ERROR);
    (void)strcpy(world.path, "/tmp/torus-XXXXXX");
    REQUIRE(mkdtemp(world.path) != NULL);
    (void)strcat(world.path, "/sock");
    REQUIRE(torus_parse(&world.groups.torus, "2x3", NULL) == 0);
    REQUIRE(uv_loop_init(&world.loop) == 0);
    world.programs = programs_open(&setup, &e);
    REQUIRE(world.programs != NULL);
    for (unsigned i = 0; i < GUESTS; i++)
        world.guest[i].fd = -1;
    be_honest();
    turn();
    world.lowest = lowest_descriptor();
    REQUIRE(atexit(end_world) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};

    if (world.programs == NULL)
        begin_world();
    for (int i = 0; i < 200 && in.size > 0; i++)
        run_operation(&in);
    turn();
    world.groups.holds = false;
    be_honest();
    for (unsigned i = 0; i < GUESTS; i++)
        close_guest(&world.guest[i]);
    for (unsigned i = 0; i < 16 || (i < TURNS && lowest_descriptor() > world.lowest); i++)
        turn();
    REQUIRE(world.groups.groups == 0);
    REQUIRE(lowest_descriptor() <= world.lowest); /* libFuzzer: -print_funcs=0 */
    return 0;
}
