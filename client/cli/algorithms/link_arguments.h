/* What the links of a torus can carry, as users write it: --without, --rate, --link-rate and --rates. */
#pragma once

#include "client/cli/terminal/cli.h"
#include "daemon/lib/schedule/damage.h"

struct link_arguments {
    const char *without, *rate, *link_rate, *rates;
};

/* The options for rates, in an array of struct option. `arguments` is the struct with a member `member` of type struct
 * link_arguments. */
#define RATE_OPTIONS(arguments, member)                                                            \
    {"--rate", "LIST", offsetof(struct arguments, member.rate),                                    \
     "links that are slower in one direction: 6:-1=0.4 is what node 6 sends by\n"                  \
     "port -1, at 0.4 of the rate of the others; *:+0=0.5 are all nodes"},                         \
        {"--link-rate", "LIST", offsetof(struct arguments, member.link_rate),                      \
         "the same for both directions of the links"},                                             \
    {                                                                                              \
        "--rates", "FILE", offsetof(struct arguments, member.rates),                               \
            "read the rates from a file: a line as in --rate, or the word link and\n"              \
            "a line as in --link-rate; # begins a comment"                                         \
    }

/* Whether a rate, or any of them, was given. */
bool link_arguments_have_rates(const struct link_arguments *a);
bool link_arguments_given(const struct link_arguments *a);
/* The first of the options that was given. */
const char *link_arguments_option(const struct link_arguments *a);

/* Reads them into *d. Returns EXIT_DONE, and the caller frees *d with damage_free(); or another exit code after printing
 * the reason, which names the option, and the file with its line, and nothing to free. */
int link_arguments_read(const struct cli *cli, const struct link_arguments *a,
                        const struct torus *t, struct damage *d);
