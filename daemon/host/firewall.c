/* Whether a firewall drops packets that this host should forward. Only root may read the rules; for others, an
 * interface of Docker, whose daemon sets the policy DROP, is the only sign. */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/host/gather.h"
#include "daemon/host/run.h"

#define RULES_MOST (64u * 1024u)
#define PATIENCE_MS 2000

/* ":FORWARD DROP [0:0]" of iptables-save, or "type filter hook forward ...; policy drop;" of nft. */
const char *firewall_policy(const char *rules)
{
    const char *forward = strstr(rules, ":FORWARD ");

    if (forward != NULL)
        return strncmp(forward, ":FORWARD DROP", 13) == 0 ? "drop" : "accept";
    for (forward = strstr(rules, "hook forward"); forward != NULL;
         forward = strstr(forward + 1, "hook forward")) {
        const char *end = strchr(forward, '\n'), *drop = strstr(forward, "policy drop");
        if (drop != NULL && (end == NULL || drop < end))
            return "drop";
    }
    return "accept";
}

void gather_firewall(struct facts *f)
{
    static const char *const programs[][5] = {{"nft", "list", "ruleset", NULL},
                                              {"iptables-save", "-t", "filter", NULL}};
    char *rules = geteuid() == 0 ? malloc(RULES_MOST) : NULL;
    const char *policy = "unknown";

    facts_add(f, "firewall.docker", "%s", if_nametoindex("docker0") != 0 ? "yes" : "no");
    for (size_t i = 0; rules != NULL && i < sizeof programs / sizeof *programs; i++) {
        if (!host_run(programs[i], PATIENCE_MS, rules, RULES_MOST, NULL))
            continue;
        policy = firewall_policy(rules);
        if (strcmp(policy, "drop") == 0)
            break;
    }
    free(rules);
    facts_add(f, "firewall.forward", "%s", policy);
}
