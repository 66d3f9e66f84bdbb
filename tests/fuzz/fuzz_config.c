/* INI files: a daemon's configuration, and the file of hosts. */
#include <sys/mman.h>
#include <unistd.h>

#include <string.h>

#include "daemon/lib/cluster/hosts_file.h"
#include "daemon/torusd/config.h"
#include "tests/fuzz/fuzz.h"

static void read_configuration(const char *path)
{
    struct config c;
    struct error e = {0};

    config_init(&c);
    if (config_read(&c, path, &e) != 0) {
        REQUIRE(e.code != ERROR_NONE);
        REQUIRE(strncmp(e.text, path, strlen(path)) == 0); /* the error names the line */
    }
    config_free(&c);
}

/* Accepted names, addresses and interfaces are safe in shell scripts. */
static void read_hosts(const char *path)
{
    const struct in_addr first = {htonl(0x0a800001)};
    struct host hosts[4];
    struct ip_routes r;
    struct torus t;
    struct error e = {0};

    REQUIRE(torus_parse(&t, "2x2m", &e) == 0 && ip_routes_init(&r, &t, NULL, &e) == 0);
    if (hosts_file_read(hosts, &r, path, first, &e) != 0)
        REQUIRE(e.code != ERROR_NONE && strncmp(e.text, path, strlen(path)) == 0);
    else
        for (uint32_t rank = 0; rank < t.nodes; rank++) {
            REQUIRE(hosts[rank].name[0] != '\0' && hosts[rank].address.s_addr != 0);
            REQUIRE(strpbrk(hosts[rank].name, "'\"$`/\\ \n") == NULL);
            for (unsigned port = 0; port < torus_ports(&t); port++)
                REQUIRE(strpbrk(hosts[rank].port[port].interface, "'\"$`/\\ \n") == NULL);
        }
    ip_routes_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = memfd_create("file.ini", MFD_CLOEXEC);

    REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    read_configuration(path);
    read_hosts(path);
    (void)close(fd);
    return 0;
}
