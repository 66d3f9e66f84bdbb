#include "tests/unit/client_fixture.h"

#include "tests/support/cmocka.h"

const struct torus_request client_pattern = {CLIENT_REQUEST, .block_bytes = 65536};
const struct torus_request client_files = {CLIENT_REQUEST, .from = "/data/out", .to = "/data/in/%r",
                                           .missing_ok = true, .replace = true};

void client_expect_request(int fd)
{
    Control__Request *request = fake_request(fd);
    FAKE_MUST(request != NULL);
    control__request__free_unpacked(request, NULL);
}

struct torus_client *client_begin(struct fake *f, void (*serve)(int fd))
{
    struct torus_error e;
    struct torus_client *client;

    fake_start(f, serve);
    client = torus_client_open(f->path, &e);
    assert_non_null(client);
    /* Under valgrind on a busy machine, ten seconds may pass between two messages. */
    torus_client_set_timeout(client, 60000);
    return client;
}

void client_end(struct fake *f, struct torus_client *client)
{
    torus_client_close(client);
    fake_stop(f);
}

void client_serve_silence(int fd)
{
    Control__Request *request;
    while ((request = fake_request(fd)) != NULL)
        control__request__free_unpacked(request, NULL);
}

void client_serve_pattern(int fd)
{
    fake_expect(fd, CONTROL__REQUEST__KIND_EXCHANGE);
    fake_reply_accepted(fd, "0.7.1");
    fake_reply_result(fd);
}
