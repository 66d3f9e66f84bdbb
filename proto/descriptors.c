#include "proto/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

void descriptors_fill_standard(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}
