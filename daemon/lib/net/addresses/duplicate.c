#include "daemon/lib/net/addresses/duplicate.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <netinet/in.h>
#include <stdio.h>

/* "fe80000000000000000000000000000a 03 40 20 08 eth0": address, index, length, scope, flags, interface */
static bool read_line(const char *line, unsigned index, struct in6_addr *address)
{
    unsigned of, length, scope, flags;
    int at = 0;

    for (unsigned i = 0; i < sizeof address->s6_addr; i++)
        if (sscanf(line + 2 * (size_t)i, "%2hhx%n", &address->s6_addr[i], &at) != 1 || at != 2)
            return false;
    return sscanf(line + 32, " %x %x %x %x", &of, &length, &scope, &flags) == 4 && of == index &&
           (flags & IFA_F_DADFAILED) != 0;
}

bool duplicate_address(unsigned index, char *text, size_t size)
{
    FILE *file = fopen("/proc/self/net/if_inet6", "re");
    struct in6_addr address;
    bool found = false;
    char line[160];

    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
        found = read_line(line, index, &address) &&
                inet_ntop(AF_INET6, &address, text, (socklen_t)size) != NULL;
    if (file != NULL)
        (void)fclose(file);
    return found;
}
