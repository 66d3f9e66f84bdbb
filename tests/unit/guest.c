#include "tests/unit/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

struct programs_fixture guest_daemon;

int guest_begin(void **state)
{
    programs_start(&guest_daemon, "2x3", 4);
    return 0;
}

int guest_end(void **state)
{
    programs_stop(&guest_daemon);
    return 0;
}

uint32_t guest_version = PROGRAM_VERSION;

void guest_connect(struct guest *g)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    *g = (struct guest){.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
    strncpy(address.sun_path, guest_daemon.path, sizeof address.sun_path - 1);
    assert_int_equal(connect(g->fd, (struct sockaddr *)&address, sizeof address), 0);
}

struct program_message guest_message(uint32_t kind, uint32_t number, uint64_t size)
{
    return (struct program_message){.magic = PROGRAM_MAGIC,
                                    .version = guest_version,
                                    .kind = kind,
                                    .number = number,
                                    .size = size};
}

void guest_say(struct guest *g, uint32_t kind, uint32_t number, uint64_t size, const char *text)
{
    struct program_message m = guest_message(kind, number, size);

    (void)snprintf(m.text, sizeof m.text, "%s", text);
    assert_int_equal(send(g->fd, &m, sizeof m, MSG_NOSIGNAL), sizeof m);
}

uint32_t guest_hear(struct guest *g)
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

void guest_open(struct guest *g, const char *name)
{
    guest_connect(g);
    guest_say(g, PROGRAM_OPEN, 0, 0, name);
    assert_int_equal(guest_hear(g), PROGRAM_OPENED);
    g->page = mmap(NULL, sizeof *g->page, PROT_READ | PROT_WRITE, MAP_SHARED, g->descriptor[0], 0);
    assert_ptr_not_equal(g->page, MAP_FAILED);
}

void guest_close(struct guest *g)
{
    (void)close(g->fd);
    if (g->page == NULL)
        return;
    (void)munmap(g->page, sizeof *g->page);
    for (unsigned i = 0; i < PROGRAM_FDS; i++)
        (void)close(g->descriptor[i]);
}

void guest_ring(struct guest *g)
{
    uint64_t one = 1;

    atomic_store(&g->page->rung, 1);
    assert_int_equal(write(g->descriptor[PROGRAM_FD_DOORBELL], &one, sizeof one), sizeof one);
}

uint32_t guest_call(struct guest *g, const struct program_request *request)
{
    uint32_t number = atomic_load(&g->page->submitted);
    struct program_slot *slot = &g->page->slot[number % PROGRAM_CALLS];

    slot->request = *request;
    slot->request.number = number;
    atomic_store(&g->page->submitted, number + 1);
    guest_ring(g);
    while (atomic_load(&slot->ended) != number + 1)
        (void)sched_yield();
    memcpy(g->m.text, slot->outcome.text, sizeof g->m.text);
    return slot->outcome.code;
}

uint32_t guest_share(struct guest *g, uint64_t size, uint8_t **data)
{
    uint32_t number;

    guest_say(g, PROGRAM_MEMORY, 0, size, "");
    assert_int_equal(guest_hear(g), PROGRAM_FILE);
    number = g->m.number;
    assert_int_equal(fallocate(g->descriptor[0], 0, 0, (off_t)size), 0);
    *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, g->descriptor[0], 0);
    assert_ptr_not_equal(*data, MAP_FAILED);
    (void)close(g->descriptor[0]);
    guest_say(g, PROGRAM_MEMORY_READY, number, 0, "");
    assert_int_equal(guest_hear(g), PROGRAM_MEMORY_TAKEN);
    return number;
}

void guest_expect_refusal(struct guest *g, uint32_t code, const char *said)
{
    uint32_t kind;

    while ((kind = guest_hear(g)) != PROGRAM_ERROR)
        assert_int_not_equal(kind, 0);
    assert_int_equal(g->m.code, code);
    GUEST_SAYS(g->m.text, said);
    assert_int_equal(guest_hear(g), 0);
}

void guest_expect_service(unsigned groups)
{
    const struct program_request barrier = {.operation = GROUP_BARRIER, .part = 3};
    struct guest g;

    guest_open(&g, "honest");
    assert_int_equal(guest_call(&g, &barrier), 0);
    guest_say(&g, PROGRAM_LEAVE, 0, 0, "");
    assert_int_equal(guest_hear(&g), 0);
    guest_close(&g);
    programs_await_groups(&guest_daemon, groups);
}
