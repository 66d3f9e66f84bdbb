/* Whether a firewall drops packets that this host should forward. Only root may read the rules; for others, an
 * interface of Docker, whose daemon sets the policy DROP, is the only sign. */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/lib/host/gather.h"
#include "daemon/lib/host/run.h"

#define RULES_MOST (64u * 1024u)
#define PATIENCE_MS 2000

#define PASS "TORUS-ROUTED" /* the chain of torus-routed (daemon/torus-routed/kernel/firewall.h) */

/* Whether a text occurs before `end`. */
static bool has(const char *begin, const char *end, const char *text)
{
    const char *at = strstr(begin, text);

    return at != NULL && at < end;
}

/* Whether a table of nft, "table ip filter {\n ... }", drops what is forwarded: "type filter hook forward ...; policy
 * drop;". */
static bool drops(const char *table, const char *table_end)
{
    if (has(table, table_end, "jump " PASS))
        return false;
    for (const char *hook = strstr(table, "hook forward"); hook != NULL && hook < table_end;
         hook = strstr(hook + 1, "hook forward"))
        if (has(hook, hook + strcspn(hook, "\n"), "policy drop"))
            return true;
    return false;
}

const char *firewall_policy(const char *rules)
{
    const char *forward = strstr(rules, ":FORWARD "), *next;

    if (forward != NULL) /* ":FORWARD DROP [0:0]" of iptables-save */
        return strncmp(forward, ":FORWARD DROP", 13) == 0 && strstr(rules, "-j " PASS) == NULL
                   ? "drop"
                   : "accept";
    for (const char *table = rules; *table != '\0'; table = next) {
        next = strstr(table + 1, "\ntable ");
        if (next == NULL)
            next = table + strlen(table);
        if (drops(table, next))
            return "drop";
    }
    return "accept";
}

const char *firewall_look(bool may)
{
    static const char *const programs[][5] = {{"nft", "list", "ruleset", NULL},
                                              {"iptables-save", "-t", "filter", NULL}};
    char *rules = may ? malloc(RULES_MOST) : NULL;
    const char *policy = "unknown";
    int status;

    for (size_t i = 0; rules != NULL && i < sizeof programs / sizeof *programs; i++) {
        /* Without any rule, they print nothing. */
        if (!host_run(programs[i], PATIENCE_MS, rules, RULES_MOST, &status) && status != 0)
            continue;
        policy = firewall_policy(rules);
        if (strcmp(policy, "drop") == 0)
            break;
    }
    free(rules);
    return policy;
}

void gather_firewall(struct facts *f)
{
    facts_add(f, "firewall.docker", "%s", if_nametoindex("docker0") != 0 ? "yes" : "no");
    const char *policy = firewall_look(geteuid() == 0);

    facts_add(f, "firewall.forward", "%s", policy);
    if (strcmp(policy, "unknown") == 0)
        facts_add(f, "unseen.firewall.forward",
                  geteuid() == 0 ? "neither nft nor iptables-save prints the rules"
                                 : "only root can read the rules of the firewall");
}
