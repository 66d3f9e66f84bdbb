#include "client/cli/terminal/suggest.h"

#include <string.h>

#define WORD 32 /* longer words get no suggestion */

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

/* Returns how many letters must be inserted, deleted, replaced or swapped to change a to b. */
static unsigned distance(const char *a, size_t n, const char *b, size_t m)
{
    unsigned d[WORD + 1][WORD + 1];

    for (unsigned i = 0; i <= n; i++)
        d[i][0] = i;
    for (unsigned j = 0; j <= m; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            d[i][j] =
                least(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1, d[i][j]);
        }
    }
    return d[n][m];
}

/* One letter of a word of three may differ, two of one of four: otherwise everything is close to a short word. */
void suggest(struct suggestion *s, const char *known)
{
    size_t n = strlen(s->word), m = strlen(known);
    unsigned far;

    if (n == 0 || n > WORD || m > WORD)
        return;
    if (n >= 3 && strncmp(s->word, known, n) == 0)
        far = 0; /* a prefix */
    else
        far = distance(s->word, n, known, m);
    if (far > 2 || 3 * far > m + 2 || (s->best != NULL && far >= s->distance))
        return;
    s->best = known;
    s->distance = far;
}
