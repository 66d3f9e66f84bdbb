/* Gathers the facts about this machine. It reads files and asks the kernel, which may take milliseconds, or longer on
 * disks that hang: not for the loop. It needs no privileges; what root alone may see is left out for others. */
#pragma once

#include "daemon/lib/host/facts.h"
#include "daemon/lib/host/past.h"

#define GATHER_FOLDERS_MOST 32u

struct gather_setup {
    size_t folders;
    /* Data roots, with the kind "data_root", and the state folder, "state_dir". */
    const char *folder[GATHER_FOLDERS_MOST], *kind[GATHER_FOLDERS_MOST];
    struct past *past; /* NULL: what the interfaces have counted in the last hour is not known */
};

/* `settings`: lines of facts that come first. */
void gather_facts(struct facts *f, const char *settings, const struct gather_setup *setup);

/* The parts: each adds its facts. */
void gather_clock(struct facts *f);
void gather_disks(struct facts *f, const struct gather_setup *setup);
void gather_firewall(struct facts *f);
void gather_interfaces(struct facts *f, struct past *past);
void gather_ip_routes(struct facts *f);
/* Says which rule or table takes packets for the neighbours' IPv4 addresses, as the settings have them, elsewhere. */
void gather_diverted_cables(struct facts *f, const char *settings);
void gather_limits(struct facts *f);
void gather_system(struct facts *f);

/* What rules, as nft or iptables-save prints them, do with packets that nothing else decides about: "drop" or "accept".
 * Where packets pass by rules of torus-routed, these decide. */
const char *firewall_policy(const char *rules);

/* Returns firewall_policy() of this machine's rules, or "unknown": only root, or a process with CAP_NET_ADMIN (`may`), can
 * read them. Runs other programs, which may take a few seconds. */
const char *firewall_look(bool may);
