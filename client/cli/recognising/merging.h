/* Brings a cluster file that exists up to date with the cables, and leaves everything else in it as it is: it belongs
 * to the people who edit it. What only they can decide is reported, not changed. */
#pragma once

#include "client/cli/recognising/recognised.h"
#include "daemon/lib/cluster/cluster_file.h"

struct merging {
    const char *path;
    char *before; /* the file; NULL: there is none, or it is empty, and nothing is merged */
    char *after;  /* with its changes so far */
    struct cluster cluster; /* of `after`, if `is_read` */
    bool is_read;
    bool has_new_dims; /* the ranks may change */
    json_t *changes;   /* sentences: what is changed in the file */
    json_t *kept;      /* sentences: what is not changed, although the cables say something else */
};

/* Reads the file. Returns 0 with *m, or -1 with *e, which names the line; in both cases the caller calls
 * merging_free(). */
int merging_begin(struct merging *m, const char *path, struct error *e);
void merging_free(struct merging *m);

/* Recognises the network with the ranks of the file, and its ports if that is possible. o->wanted: new dimensions for
 * the file. As recognise(); m->kept says what does not fit. */
int merging_recognise(struct merging *m, struct recognised *r, const struct discovered *d,
                      const struct recognise_options *o, struct error *e);

/* Changes the file: new hosts, ports and ids. Returns 0, or -1 with *e, and the file is as before. */
int merging_finish(struct merging *m, const struct recognised *r, struct error *e);
