#include "daemon/lib/net/link_speed.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_MBIT 4000000L /* in kbit/s, the rate must fit 32 bits */

/* A path that is too long is that of no interface. */
static bool path_of(char path[PATH_MAX], const char *folder, const char *interface,
                    const char *file)
{
    const int length = snprintf(path, PATH_MAX, "%s/%s/%s", folder, interface, file);

    return interface[0] != '\0' && strchr(interface, '/') == NULL && length < PATH_MAX;
}

uint32_t link_speed_mbit(const char *folder, const char *interface)
{
    char path[PATH_MAX], text[16], *end;
    long mbit;

    /* A veth, a bridge or a tunnel has no device, and its speed is an invention of the kernel. */
    if (!path_of(path, folder, interface, "device") || access(path, F_OK) != 0 ||
        !path_of(path, folder, interface, "speed"))
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, text, sizeof text - 1); /* fails without a carrier */
    (void)close(fd);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    mbit = strtol(text, &end, 10);
    return end != text && (*end == '\n' || *end == '\0') && mbit > 0 && mbit <= MOST_MBIT &&
                   mbit != UINT16_MAX
               ? (uint32_t)mbit
               : 0; /* the driver does not know the speed: it says -1, or 65535 if it is old */
}
