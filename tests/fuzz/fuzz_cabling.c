/* Cables as strangers report them: whatever interfaces claim to hear, there is an answer, and it is consistent.
 * Bytes: hosts, interfaces of a host, options, then pairs of interfaces: the first of each pair hears the second. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/cabling/cabling.h"
#include "tests/fuzz/fuzz.h"

#define HOSTS_MOST 16u
#define INTERFACES_MOST 6u
#define HEARD_MOST 8u

struct machines {
    char name[HOSTS_MOST][12];
    struct cabling_host host[HOSTS_MOST];
    struct cabling_interface interface[HOSTS_MOST][INTERFACES_MOST];
    struct cabling_end heard[HOSTS_MOST][INTERFACES_MOST][HEARD_MOST];
};

static void check_moves(const struct cabling_result *r, const struct cabling_input *in)
{
    char text[600];

    for (uint32_t i = 0; i < r->moves; i++) {
        int length = cabling_move_text(r, in, i, text, sizeof text);
        REQUIRE(length > 0 && strlen(text) > 0);
        REQUIRE(r->move[i].from.host == CABLING_NONE || r->move[i].from.host < in->hosts);
        REQUIRE(r->move[i].to.host == CABLING_NONE || r->move[i].to.host < in->hosts);
    }
}

static void check(const struct cabling_result *r, const struct cabling_input *in)
{
    unsigned ports = r->finding == CABLING_UNCLEAR ? 0 : torus_ports(&r->torus);

    REQUIRE(r->text[0] != '\0');
    check_moves(r, in);
    for (uint32_t rank = 0; rank < r->torus.nodes && ports > 0; rank++) {
        uint32_t host = r->host_of_rank[rank];
        if (host == CABLING_NONE)
            continue;
        REQUIRE(host < in->hosts && r->rank_of_host[host] == rank);
        for (unsigned port = 0; port < ports; port++) {
            uint32_t at = r->interface_at[(size_t)rank * ports + port];
            REQUIRE(at == CABLING_NONE || at < in->host[host].interfaces);
            for (unsigned other = 0; at != CABLING_NONE && other < port; other++)
                REQUIRE(r->interface_at[(size_t)rank * ports + other] !=
                        at); /* it has one port only */
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct machines m;
    static const char *const interfaces[INTERFACES_MOST] = {"a", "b", "c", "d", "e", "f"};
    struct torus wanted;
    struct cabling_input in = {.host = m.host};
    struct cabling_result r;
    struct error e = {0};

    if (size < 3)
        return 0;
    memset(&m, 0, sizeof m);
    in.hosts = data[0] % (HOSTS_MOST + 1);
    for (uint32_t h = 0; h < in.hosts; h++) {
        (void)snprintf(m.name[h], sizeof m.name[h], "h%u", h);
        m.host[h] = (struct cabling_host){.name = m.name[h],
                                          .interface = m.interface[h],
                                          .interfaces = data[1] % (INTERFACES_MOST + 1),
                                          .rank = (data[2] & 2) != 0 ? h : CABLING_NONE};
        for (uint32_t i = 0; i < INTERFACES_MOST; i++)
            m.interface[h][i] = (struct cabling_interface){
                .name = interfaces[i], .heard = m.heard[h][i], .carrier = (h & i) != 0, .port = -1};
    }
    for (size_t k = 3; k + 1 < size; k += 2) {
        uint32_t a = data[k] % HOSTS_MOST, b = data[k + 1] % HOSTS_MOST;
        struct cabling_interface *i = &m.interface[a][data[k] / HOSTS_MOST % INTERFACES_MOST];
        if (i->heard_count < HEARD_MOST)
            m.heard[a][i - m.interface[a]][i->heard_count++] =
                (struct cabling_end){b, data[k + 1] / HOSTS_MOST % INTERFACES_MOST};
    }
    if ((data[2] & 1) != 0 && torus_parse(&wanted, (data[2] & 4) != 0 ? "3x3" : "2x4m", &e) == 0)
        in.wanted = &wanted;
    if (cabling_find(&r, &in, &e) != 0) {
        REQUIRE(e.code == ERROR_USAGE && e.text[0] != '\0');
        return 0;
    }
    check(&r, &in);
    cabling_free(&r);
    return 0;
}
