#include "daemon/torus-routed/kernel/kernel.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/host/run.h"

#define ANSWER_MOST (1u << 20)
#define PATIENCE_MS 3000

/* The chains of others that see what is forwarded. */
static const struct {
    const char *table, *chain;
} firewalls[] = {
    {"ip filter", "DOCKER-USER"},
    {"ip6 filter", "DOCKER-USER"},
    {"inet firewalld", "filter_FORWARD"},
};
#define FIREWALLS (sizeof firewalls / sizeof firewalls[0])

/* --- nft --- */

/* Runs nft with a command. Returns what it has printed, which the caller frees, or NULL: it could not run, or has
 * failed; then *error, if not NULL, has its message, which the caller frees, or NULL. */
static char *nft(const char *command, char **error)
{
    const char *const arguments[] = {"nft", "-a", command, NULL};
    char *text = malloc(ANSWER_MOST);
    int status = -1;

    if (error != NULL)
        *error = NULL;
    if (text == NULL)
        return NULL;
    (void)host_run_all(arguments, PATIENCE_MS, text, ANSWER_MOST, &status);
    if (status == 0)
        return text;
    if (error != NULL)
        *error = text;
    else
        free(text);
    return NULL;
}

/* --- the rules --- */

/* Returns the rules of the firewall's chain as nft prints them, or NULL: there is no such firewall. */
static char *rules_of(size_t which)
{
    char command[128];

    (void)snprintf(command, sizeof command, "list chain %s %s", firewalls[which].table,
                   firewalls[which].chain);
    return nft(command, NULL);
}

static bool has_rule(const char *rules, const char *interface)
{
    char rule[64];

    (void)snprintf(rule, sizeof rule, "iifname \"%.15s\"", interface);
    for (const char *at = strstr(rules, rule); at != NULL; at = strstr(at + 1, rule)) {
        const char *jump = strstr(at, "jump " FIREWALL_CHAIN), *end = strchr(at, '\n');
        if (jump != NULL && (end == NULL || jump < end))
            return true;
    }
    return false;
}

/* Returns the rules of our chain in the table of the firewall; NULL: it does not exist. */
static char *own_rules(size_t which)
{
    char command[128];

    (void)snprintf(command, sizeof command, "list chain %s " FIREWALL_CHAIN,
                   firewalls[which].table);
    return nft(command, NULL);
}

/* Whether our chain accepts what leaves by all of these interfaces. */
static bool accepts(size_t which, char interface[][IFNAMSIZ], unsigned count)
{
    char *rules = own_rules(which), rule[64];
    bool all = rules != NULL;

    for (unsigned i = 0; all && i < count; i++) {
        (void)snprintf(rule, sizeof rule, "oifname \"%.15s\" accept", interface[i]);
        all = strstr(rules, rule) != NULL;
    }
    free(rules);
    return all;
}

static void add_rules(size_t which, const char *rules, char interface[][IFNAMSIZ], unsigned count)
{
    const char *table = firewalls[which].table;
    char *command = NULL, *error;
    size_t size;
    FILE *out = open_memstream(&command, &size);

    if (out == NULL)
        return;
    (void)fprintf(out, "add chain %s " FIREWALL_CHAIN "\nflush chain %s " FIREWALL_CHAIN "\n",
                  table, table);
    for (unsigned i = 0; i < count; i++) {
        (void)fprintf(out, "add rule %s " FIREWALL_CHAIN " oifname \"%.15s\" accept\n", table,
                      interface[i]);
        if (!has_rule(rules, interface[i]))
            (void)fprintf(out, "insert rule %s %s iifname \"%.15s\" jump " FIREWALL_CHAIN "\n",
                          table, firewalls[which].chain, interface[i]);
    }
    if (fclose(out) == 0) {
        char *said = nft(command, &error);
        if (said == NULL)
            log_warning("the firewall (%s %s) may drop what is forwarded: nft says: %.200s", table,
                        firewalls[which].chain, error != NULL ? error : "nothing");
        else
            log_info("the firewall (%s %s) lets packets pass from cable to cable", table,
                     firewalls[which].chain);
        free(said != NULL ? said : error);
    }
    free(command);
}

void firewall_pass(char interface[][IFNAMSIZ], unsigned count)
{
    for (size_t which = 0; which < FIREWALLS; which++) {
        char *rules = rules_of(which);
        bool missing = false;
        for (unsigned i = 0; rules != NULL && i < count; i++)
            missing |= !has_rule(rules, interface[i]);
        if (missing || (rules != NULL && count > 0 && !accepts(which, interface, count)))
            add_rules(which, rules, interface, count);
        free(rules);
    }
}

/* Deletes the rules of a chain that jump to ours. A line ends with "# handle 12". */
static void remove_rules(size_t which, char *rules)
{
    char *save = NULL, command[160];

    for (char *line = strtok_r(rules, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        const char *handle = strstr(line, "# handle ");
        if (handle == NULL || strstr(line, "jump " FIREWALL_CHAIN) == NULL)
            continue;
        (void)snprintf(command, sizeof command, "delete rule %s %s handle %lu",
                       firewalls[which].table, firewalls[which].chain,
                       strtoul(handle + strlen("# handle "), NULL, 10));
        free(nft(command, NULL));
    }
}

void firewall_remove(void)
{
    char command[160];

    for (size_t which = 0; which < FIREWALLS; which++) {
        char *rules = rules_of(which);
        if (rules != NULL)
            remove_rules(which, rules);
        free(rules);
        /* Ours may be there even if theirs is gone. */
        rules = own_rules(which);
        if (rules == NULL)
            continue;
        (void)snprintf(command, sizeof command,
                       "flush chain %s " FIREWALL_CHAIN "\ndelete chain %s " FIREWALL_CHAIN,
                       firewalls[which].table, firewalls[which].table);
        free(nft(command, NULL));
        free(rules);
    }
}
