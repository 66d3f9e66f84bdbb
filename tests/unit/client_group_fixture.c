#include "tests/unit/client_group_fixture.h"

#include <poll.h>

#include "tests/support/cmocka.h"
#include "tests/unit/programs_fixture.h"

struct programs_fixture client_group_daemon;
struct torus_error client_group_error;

int client_group_begin(void **state)
{
    programs_start(&client_group_daemon, "2x3m", 4);
    return 0;
}

int client_group_end(void **state)
{
    programs_stop(&client_group_daemon);
    return 0;
}

int client_group_open_named(const char *name, uint32_t timeout_ms, struct torus_group **g)
{
    struct torus_group_options options;

    torus_group_options_init(&options);
    options.socket = client_group_daemon.control;
    options.name = name;
    options.timeout_ms = timeout_ms;
    return torus_group_open(&options, g, &client_group_error);
}

struct torus_group *client_group_open(void)
{
    struct torus_group *g;

    if (client_group_open_named(NULL, 0, &g) != 0)
        fail_msg("%s", client_group_error.text);
    return g;
}

void client_group_fill(void *at, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)at)[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

void client_group_expect(const void *at, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const uint8_t *)at)[i] != (uint8_t)(i * 7 + i / 251 + seed))
            fail_msg("byte %zu is %u", i, ((const uint8_t *)at)[i]);
}

void client_group_fail_all(struct programs_fixture *f, void *argument)
{
    standin_fail(&f->groups, ERROR_TIMEOUT, argument);
}

bool client_group_is_readable(int fd, int milliseconds)
{
    struct pollfd p = {fd, POLLIN, 0};

    return poll(&p, 1, milliseconds) > 0;
}
