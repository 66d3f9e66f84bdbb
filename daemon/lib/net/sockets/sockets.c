#include "daemon/lib/net/sockets/sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/net/sockets/hops.h"
#include "daemon/lib/net/sockets/pacing.h"

int socket_set_up(const struct socket_options *o, int fd, sa_family_t family, const char *interface)
{
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    pacing_limit_unsent(fd, o->slow);
    /* A socket that starts with BBR, the default of some systems, keeps BBR's pacing timer even if it is set
     * to another algorithm later. That costs a fifth more processor time per byte. */
    if (o->congestion[0] != '\0' && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, o->congestion,
                                               (socklen_t)strlen(o->congestion)) != 0)
        log_debug("congestion control %s is not available: %s", o->congestion, strerror(errno));
    if (hops_limit(fd, family, o->hop_limit) != 0)
        log_warning("the hop limit of links cannot be set: %s", strerror(errno));
    if (interface[0] == '\0')
        return 0;
    return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface,
                      (socklen_t)(strlen(interface) + 1));
}

const char *socket_failure(int error, const char *interface, char *text, size_t size)
{
    if (error == ENODEV && interface[0] != '\0')
        (void)snprintf(text, size, "there is no interface %s", interface);
    else if (error == EPERM && interface[0] != '\0')
        (void)snprintf(text, size,
                       "sockets cannot be bound to %s: before Linux 5.7 that needs CAP_NET_RAW "
                       "(AmbientCapabilities= of systemd)",
                       interface);
    else if (error == EADDRNOTAVAIL)
        (void)snprintf(text, size, "no interface has this address%s%s (yet)",
                       interface[0] != '\0' ? " on " : "", interface);
    else
        (void)snprintf(text, size, "%s", uv_strerror(uv_translate_sys_error(error)));
    return text;
}
