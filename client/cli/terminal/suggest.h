/* Finds the known word that is closest to a misspelt one, for "did you mean ...?" */
#pragma once

struct suggestion {
    const char *word; /* the word that was given; set by the caller */
    const char *best; /* the closest known word, or NULL if none is close */
    unsigned distance;
};

/* Compares a known word, and keeps it if it is the closest. */
void suggest(struct suggestion *s, const char *known);
