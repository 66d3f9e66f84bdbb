/*
 * Captures frames on all interfaces until its standard input ends. Then it prints how many frames of each
 * kind went between which addresses, as lines "INTERFACE in|out KIND FROM TO FRAMES", and "lost FRAMES". It
 * prints "listening" as soon as it captures.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 256u   /* different lines */
#define IP_FROM 12u /* offsets of the addresses in an IPv4 header */
#define IP_TO 16u
#define ARP_FROM 14u /* and in an ARP message */
#define ARP_TO 24u
#define SNAPSHOT 64u
#define BUFFER (8 * 1024 * 1024)

struct line {
    char interface[IF_NAMESIZE];
    char kind[8];
    char from[INET_ADDRSTRLEN], to[INET_ADDRSTRLEN];
    bool leaves;
    unsigned long frames;
};

static struct line lines[MOST];
static unsigned count, lost;

static void add(const struct line *line)
{
    unsigned i = 0;

    for (; i < count; i++)
        if (strcmp(lines[i].interface, line->interface) == 0 &&
            strcmp(lines[i].kind, line->kind) == 0 && strcmp(lines[i].from, line->from) == 0 &&
            strcmp(lines[i].to, line->to) == 0 && lines[i].leaves == line->leaves)
            break;
    if (i == MOST) {
        lost++;
        return;
    }
    if (i == count)
        lines[count++] = *line;
    lines[i].frames++;
}

static void receive(int fd)
{
    uint8_t frame[SNAPSHOT];
    struct sockaddr_ll about;
    socklen_t size = sizeof about;
    struct line line = {.frames = 0};
    ssize_t n = recvfrom(fd, frame, sizeof frame, MSG_DONTWAIT, (struct sockaddr *)&about, &size);
    unsigned kind, from = 0, to = 0;

    if (n < 0 || if_indextoname((unsigned)about.sll_ifindex, line.interface) == NULL)
        return;
    kind = ntohs(about.sll_protocol);
    line.leaves = about.sll_pkttype == PACKET_OUTGOING;
    (void)snprintf(line.kind, sizeof line.kind, "%04x", kind);
    if (kind == ETHERTYPE_IP && n >= 20) {
        (void)snprintf(line.kind, sizeof line.kind, "ip-%u", frame[9]);
        from = IP_FROM, to = IP_TO;
    } else if (kind == ETHERTYPE_ARP && n >= 28) {
        (void)strcpy(line.kind, "arp");
        from = ARP_FROM, to = ARP_TO;
    }
    (void)strcpy(line.from, "?");
    (void)strcpy(line.to, "?");
    if (to != 0) {
        (void)inet_ntop(AF_INET, frame + from, line.from, sizeof line.from);
        (void)inet_ntop(AF_INET, frame + to, line.to, sizeof line.to);
    }
    add(&line);
}

int main(void)
{
    int fd = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL)), room = BUFFER;
    struct tpacket_stats stats = {.tp_drops = 0};
    socklen_t size = sizeof stats;
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    char ignored[64];

    if (fd < 0) {
        perror("capture: AF_PACKET");
        return 1;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    (void)puts("listening");
    (void)fflush(stdout);
    while (poll(p, 2, -1) >= 0 || errno == EINTR) {
        if (p[0].revents != 0)
            receive(fd);
        else if (p[1].revents != 0 && read(0, ignored, sizeof ignored) <= 0)
            break;
    }
    (void)getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size);
    for (unsigned i = 0; i < count; i++)
        (void)printf("%s %s %s %s %s %lu\n", lines[i].interface, lines[i].leaves ? "out" : "in",
                     lines[i].kind, lines[i].from, lines[i].to, lines[i].frames);
    (void)printf("lost %u\n", stats.tp_drops + lost);
    return 0;
}
