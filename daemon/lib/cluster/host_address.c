#include "daemon/lib/cluster/host_address.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#include "proto/number.h"

#define LENGTH 32u /* bits of an address */

const char *host_address_problem(struct in_addr address)
{
    uint32_t value = ntohl(address.s_addr);

    if (value >> 24 == 0)
        return "is not specified";
    if (value >> 24 == 127)
        return "is a loopback address";
    if (IN_MULTICAST(value))
        return "is a multicast address";
    if (value == INADDR_BROADCAST)
        return "is the broadcast address";
    if (value >> 28 == 15)
        return "is reserved";
    return NULL;
}

/* Returns why no host can have this address in a network with this prefix, or NULL if a host can. */
static const char *place_in_network(uint32_t value, uint32_t prefix)
{
    uint32_t host = prefix == 0 ? UINT32_MAX : (UINT32_C(1) << (LENGTH - prefix)) - 1;

    if (prefix >= LENGTH - 1) /* such networks have no network or broadcast address */
        return NULL;
    if ((value & host) == 0)
        return "is the address of that network";
    return (value & host) == host ? "is the broadcast address of that network" : NULL;
}

int host_address_parse(const char *text, struct in_addr *address, struct error *e)
{
    char alone[INET_ADDRSTRLEN] = "";
    size_t length = strcspn(text, "/");
    uint32_t prefix = LENGTH;
    const char *problem;

    if (length < sizeof alone)
        memcpy(alone, text, length);
    if (inet_pton(AF_INET, alone, address) != 1)
        return error_set(e, ERROR_USAGE, "\"%.50s\" is not an IPv4 address of a host", text);
    if (text[length] == '/' && number_parse(text + length + 1, LENGTH, &prefix, e) != 0)
        return error_wrap(e, "\"%.50s\": the prefix", text);
    problem = host_address_problem(*address);
    if (problem == NULL)
        problem = place_in_network(ntohl(address->s_addr), prefix);
    if (problem != NULL)
        return error_set(e, ERROR_USAGE, "%.50s %s: no host can have it", text, problem);
    return 0;
}
