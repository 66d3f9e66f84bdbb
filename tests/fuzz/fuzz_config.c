/* Configuration files. */
#include <sys/mman.h>
#include <unistd.h>

#include <string.h>

#include "daemon/config.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config c;
    struct error e = {0};
    char path[64];
    int fd = memfd_create("torusd.ini", MFD_CLOEXEC);

    REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    config_init(&c);
    if (config_read(&c, path, &e) != 0) {
        REQUIRE(e.code != ERROR_NONE);
        REQUIRE(strncmp(e.text, path, strlen(path)) == 0); /* says where */
    }
    config_free(&c);
    (void)close(fd);
    return 0;
}
