/* "Did you mean ...?" */
#ifndef TORUSD_CLI_SUGGEST_H
#define TORUSD_CLI_SUGGEST_H

struct suggestion {
    const char *word; /* as given; set by the caller */
    const char *best; /* the known word that is closest, or NULL if none is close */
    unsigned distance;
};

/* Considers one known word. */
void suggest(struct suggestion *s, const char *known);

#endif
