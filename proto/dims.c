#include "proto/dims.h"

#include <stdlib.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwyz" /* without x, which is between factors */

/* The nodes of a tree in which each node has `branches` children, on that many levels; 0 if too many. */
static uint32_t tree_nodes(unsigned long branches, unsigned long levels)
{
    uint64_t nodes = 1, level = 1;

    for (; levels > 0 && nodes <= UINT32_MAX; levels--)
        nodes += level *= branches;
    return nodes <= UINT32_MAX ? (uint32_t)nodes : 0;
}

/* Reads a factor and moves *text behind it. Returns its size, 0 if the text is something else. */
static uint32_t read_factor(const char **text)
{
    const char *word = *text, *digits = word + strspn(word, LETTERS);
    char *end;

    digits += digits > word && *digits == ':';
    if (*digits < '0' || *digits > '9')
        return 0;
    unsigned long number = strtoul(digits, &end, 10), levels;
    if (*end == '^') {
        levels = strtoul(end + 1, &end, 10);
        *text = end;
        return number <= UINT16_MAX ? tree_nodes(number, levels) : 0;
    }
    *text = end + strspn(end, "m:0123456789abcdef"); /* a digest, or that it does not wrap */
    return number <= UINT32_MAX ? (uint32_t)number : 0;
}

unsigned dims_sizes(const char *text, uint32_t *size, unsigned most)
{
    uint32_t nodes = 1;

    for (unsigned dims = 0; dims < most; text++) {
        text += strspn(text, " ");
        size[dims] = read_factor(&text);
        if (size[dims] == 0 || size[dims] > UINT32_MAX / nodes)
            return 0;
        nodes *= size[dims++];
        text += strspn(text, " ");
        if (*text == '\0')
            return dims;
        if (*text != 'x')
            return 0;
    }
    return 0;
}
