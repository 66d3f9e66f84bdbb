#include "tests/unit/test_client_fake.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void *serve_one(void *data)
{
    struct fake *f = data;
    int fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        f->serve(fd);
        (void)close(fd);
    }
    return NULL;
}

void fake_start(struct fake *f, void (*serve)(int fd))
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    strcpy(f->directory, "/tmp/torus-test-XXXXXX");
    if (mkdtemp(f->directory) == NULL)
        err(1, "mkdtemp");
    (void)snprintf(f->path, sizeof f->path, "%s/control.sock", f->directory);
    strcpy(address.sun_path, f->path);
    f->serve = serve;
    f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(f->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(f->listener, 1) != 0)
        err(1, "%s", f->path);
    if (pthread_create(&f->thread, NULL, serve_one, f) != 0)
        errx(1, "no thread");
}

void fake_stop(struct fake *f)
{
    (void)shutdown(f->listener, SHUT_RDWR); /* if nobody has come */
    (void)pthread_join(f->thread, NULL);
    (void)close(f->listener);
    (void)unlink(f->path);
    (void)rmdir(f->directory);
}

void fake_must(bool holds, const char *condition)
{
    if (!holds)
        errx(1, "the daemon's side of the test: not so: %s", condition);
}

static int read_whole(int fd, uint8_t *data, size_t length)
{
    while (length > 0) {
        ssize_t n = recv(fd, data, length, 0);
        if (n <= 0)
            return -1;
        data += n;
        length -= (size_t)n;
    }
    return 0;
}

Control__Request *fake_request(int fd)
{
    uint8_t prefix[FRAME_PREFIX_SIZE], head[65536];
    struct frame_prefix p;
    struct error e;

    if (read_whole(fd, prefix, sizeof prefix) != 0)
        return NULL;
    if (frame_prefix_read(prefix, sizeof head, 0, &p, &e) != 0)
        errx(1, "request: %s", e.text);
    if (read_whole(fd, head, p.head) != 0)
        errx(1, "request cut short");
    return control__request__unpack(NULL, p.head, head);
}

void fake_expect(int fd, Control__Request__KindCase kind)
{
    Control__Request *request = fake_request(fd);
    FAKE_MUST(request != NULL);
    FAKE_MUST(request->kind_case == kind);
    control__request__free_unpacked(request, NULL);
}

void fake_write(int fd, const void *data, size_t length)
{
    const char *p = data;
    while (length > 0) {
        ssize_t n = send(fd, p, length, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        p += n;
        length -= (size_t)n;
    }
}

void fake_reply(int fd, const Control__Reply *reply)
{
    size_t length;
    uint8_t *frame = frame_pack(&reply->base, &length);
    fake_write(fd, frame, length);
    free(frame);
}

void fake_reply_error(int fd, uint32_t code, const char *text, const char *exchange)
{
    Control__Error body = CONTROL__ERROR__INIT;

    body.code = code;
    body.text = (char *)(uintptr_t)text;
    body.exchange = (char *)(uintptr_t)exchange;
    fake_reply(fd, CONTROL_REPLY(ERROR, error, &body));
}

static void fill_group(Control__Status__Group *group)
{
    static char name[] = "job\n1", id[] = "6.1.2", around[] = "link 3:+0\n";

    group->name = name;
    group->id = id;
    group->open = 1;
    group->process = 4321;
    group->calls = 12;
    group->calls_done = 11;
    group->bytes_sent = 4096;
    group->bytes_received = 8192;
    group->early = 100;
    group->reserved = 65536;
    group->avoids = around;
}

static void fill_exchange(Control__Status__Exchange *exchange)
{
    static char id[] = "6.1.1", algorithm[] = "at2", state[] = "committed";

    exchange->id = id;
    exchange->algorithm = algorithm;
    exchange->state = state;
    exchange->root = 6;
    exchange->age_ms = 1500;
}

static void fill_copy(Control__Status__Copy *copy)
{
    static char id[] = "c0ffee", target[] = "/data/\nx";

    copy->id = id;
    copy->asker = 2;
    copy->phase = 3;
    copy->bytes = 1024;
    copy->bytes_of = 4096;
    copy->target = target;
}

static void fill_unconfirmed(Control__Status__Unconfirmed *unconfirmed, uint32_t *owing)
{
    static char id[] = "6.1.0", reason[] = "committed, but node 3\n";

    unconfirmed->id = id;
    unconfirmed->count = 70;
    unconfirmed->n_node = 2;
    unconfirmed->node = owing;
    unconfirmed->reason = reason;
}

void fake_reply_status(int fd)
{
    Control__Status body = CONTROL__STATUS__INIT;
    Control__Status__Exchange exchange = CONTROL__STATUS__EXCHANGE__INIT;
    Control__Status__Exchange *exchanges[] = {&exchange};
    Control__Status__Group group = CONTROL__STATUS__GROUP__INIT;
    Control__Status__Group opening = CONTROL__STATUS__GROUP__INIT;
    Control__Status__Group *groups[] = {&group, &opening};
    Control__Status__Unconfirmed unconfirmed = CONTROL__STATUS__UNCONFIRMED__INIT;
    Control__Status__Unconfirmed *records[] = {&unconfirmed};
    uint32_t owing[] = {3, 9};
    Control__Status__Copy copy = CONTROL__STATUS__COPY__INIT;
    Control__Status__Copy *copies[] = {&copy};
    Control__Costs costs = CONTROL__COSTS__INIT;
    Control__Calibration calibration = CONTROL__CALIBRATION__INIT;
    uint32_t coordinates[] = {1, 2};
    /* An escape sequence, a line end, and bytes that are not UTF-8. */
    char fault[] = "link +0 of \033[31mnode 3\nis down \xff";
    char *faults[] = {fault};
    char *roots[] = {(char[]){"/data"}};

    fill_exchange(&exchange);
    body.version = (char[]){"0.1.0"};
    body.dims = (char[]){"4x4m"};
    body.rank = 6;
    body.n_coordinates = 2;
    body.coordinates = coordinates;
    body.uptime_ms = 90000;
    body.n_fault = 1;
    body.fault = faults;
    body.n_exchange = 1;
    body.exchange = exchanges;
    fill_group(&group);
    opening.name = (char[]){"default"};
    body.n_group = 2;
    body.group = groups;
    fill_unconfirmed(&unconfirmed, owing);
    body.n_unconfirmed = 1;
    body.unconfirmed = records;
    fill_copy(&copy);
    body.n_copy = 1;
    body.copy = copies;
    body.n_data_root = 1;
    body.data_root = roots;
    body.link_mbit = 50;
    body.memory_budget = 1 << 20;
    body.pid = 77;
    costs.step_seconds = 4e-5;
    calibration.costs = &costs;
    calibration.measured_at = 86400;
    body.calibration = &calibration;
    fake_reply(fd, CONTROL_REPLY(STATUS, status, &body));
}

void fake_reply_links(int fd)
{
    Control__Links body = CONTROL__LINKS__INIT;
    Control__Links__Link up = CONTROL__LINKS__LINK__INIT, down = CONTROL__LINKS__LINK__INIT;
    Control__Links__Link *links[] = {&up, &down};

    up.name = (char[]){"+0"};
    up.neighbour = 4;
    up.address = (char[]){"10.0.0.2:7000"};
    up.up = 1;
    up.state = (char[]){"up"};
    up.tx_bytes = 65536;
    up.rx_bytes = 1000;
    up.rtt_us = 150;
    up.rate_bps = 940000000;
    up.up_ms = 61000;
    up.connects = 1;
    down.port = 1;
    down.name = (char[]){"-0"};
    down.neighbour = UINT32_MAX;
    down.state = (char[]){"waiting"};
    down.reason = (char[]){"the neighbour has not dialled"};
    body.n_link = 2;
    body.link = links;
    body.heartbeat_ms = 250;
    body.silence_ms = 1000;
    fake_reply(fd, CONTROL_REPLY(LINKS, links, &body));
}

void fake_reply_accepted(int fd, const char *id)
{
    Control__Accepted body = CONTROL__ACCEPTED__INIT;

    body.id = (char *)(uintptr_t)id;
    fake_reply(fd, CONTROL_REPLY(ACCEPTED, accepted, &body));
}

void fake_reply_progress(int fd, const char *state, uint64_t done, uint64_t total)
{
    Control__Progress body = CONTROL__PROGRESS__INIT;

    body.state = (char *)(uintptr_t)state;
    body.round = 1;
    body.rounds = 1;
    body.done_bytes = done;
    body.total_bytes = total;
    fake_reply(fd, CONTROL_REPLY(PROGRESS, progress, &body));
}

void fake_reply_barrier(int fd, const uint32_t *ranks, size_t count)
{
    Control__ExchangeResult body = CONTROL__EXCHANGE_RESULT__INIT;
    Control__ExchangeResult__Arrival arrival[16], *arrivals[16];

    FAKE_MUST(count <= 16);
    for (size_t i = 0; i < count; i++) {
        control__exchange_result__arrival__init(&arrival[i]);
        arrival[i].rank = ranks[i];
        arrival[i].after_nanoseconds = 1000000 * i;
        arrivals[i] = &arrival[i];
    }
    body.id = (char[]){"0.7.1"};
    body.dims = (char[]){"4x4"};
    body.nodes = 16;
    body.operation = (char[]){"barrier"};
    body.waited_nanoseconds = 2500000;
    body.n_arrival = count;
    body.arrival = arrivals;
    fake_reply(fd, CONTROL_REPLY(EXCHANGE, exchange, &body));
}

static void reply_result(int fd, uint64_t *each, size_t repeat)
{
    Control__ExchangeResult body = CONTROL__EXCHANGE_RESULT__INIT;
    Control__ExchangeResult__Node first = CONTROL__EXCHANGE_RESULT__NODE__INIT,
                                  second = CONTROL__EXCHANGE_RESULT__NODE__INIT;
    Control__ExchangeResult__Port port = CONTROL__EXCHANGE_RESULT__PORT__INIT;
    Control__ExchangeResult__Port *ports[] = {&port};
    Control__ExchangeResult__Node *nodes[] = {&second, &first}; /* not in order */

    port.name = (char[]){"+0"};
    port.tx_bytes = 131072;
    port.rx_bytes = 131073;
    port.tx_blocks = 2;
    port.combined_messages = 1;
    first.rank = 0;
    first.nanoseconds = 20000000;
    first.n_port = 1;
    first.port = ports;
    second.rank = 1;
    second.nanoseconds = 21000000;
    body.id = (char[]){"0.7.1"};
    body.dims = (char[]){"4x4"};
    body.algorithm = (char[]){"at2"};
    body.mode = (char[]){"stepped"};
    body.nodes = 16;
    body.block_bytes = 65536;
    body.nanoseconds = 100000000;
    body.bound = 8;
    body.link_mbit = 50;
    body.startups = 4;
    body.transmission = 8;
    body.rounds = 1;
    body.blocks_delivered = 240;
    body.bytes_delivered = 240 * 65536;
    body.operation = (char[]){"exchange"};
    body.check = CONTROL__CHECK__BYTES;
    body.n_node = 2;
    body.node = nodes;
    body.repeat = (uint32_t)repeat;
    body.n_each_nanoseconds = repeat;
    body.each_nanoseconds = each;
    body.all_nanoseconds = 1200000000;
    fake_reply(fd, CONTROL_REPLY(EXCHANGE, exchange, &body));
}

void fake_reply_result(int fd)
{
    reply_result(fd, NULL, 0);
}

void fake_reply_repetitions(int fd)
{
    uint64_t each[] = {200000000, 600000000, 100000000};
    reply_result(fd, each, 3);
}
