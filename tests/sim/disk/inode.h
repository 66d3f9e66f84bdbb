/* The files and folders of a disk, and the open descriptors. */
#pragma once

#include "daemon/torusd/disk/file_system.h"
#include "tests/sim/disk/file_system.h"

#define OUTPUT_MARK ".torusd-" /* in the name of an output's temporary folder */
#define DECISION_MARK "committed-"

struct entry {
    char name[DISK_NAME];
    struct inode *inode;
};

struct entries {
    struct entry *entry;
    size_t count;
};

/* A change of a folder: a name refers to `to`, or is removed (NULL). A rename is two changes that belong together. */
struct change {
    char name[DISK_NAME];
    struct inode *inode;
    bool more; /* the next change belongs to this one */
};

/* Written bytes of a block: one run if written from front to back, several if in segments. */
struct run {
    uint64_t from, to;
    unsigned attempt;
};

enum contents { BYTES, SOURCE, OUTPUT };

struct inode {
    struct inode *next; /* of all */
    uint64_t number;
    enum file_kind kind;
    bool locked;
    /* A folder: */
    struct entries now, synced;
    struct change *change; /* since it was synced */
    size_t changes;
    char made_as[DISK_NAME];         /* the name of the output in its latest attempt, */
    char made_for[EXCHANGE_ID_SIZE]; /* and the id in that name */
    unsigned attempt;                /* number of earlier attempts */
    struct sim_request *request;
    char source[64]; /* of blocks: "/random/1000" */
    /* A file: */
    enum contents contents;
    uint64_t size;
    uint8_t *bytes;
    bool dirty;
    uint8_t *synced_bytes;
    uint64_t synced_size;
    uint32_t block[2]; /* source and destination */
    bool has_been_read;
    uint64_t modified;
    const struct inode *folder; /* an output's */
    uint64_t *damaged;          /* offsets of written bytes that are wrong */
    size_t damages;
    struct run *run;
    size_t runs;
};

struct descriptor {
    struct inode *inode; /* NULL: free */
    bool locks;
};

struct inode *inode_new(struct disk *disk, enum file_kind kind);

/* The inode of a name in a folder; NULL if there is no such name. */
struct entry *entries_find(const struct entries *entries, const char *name);

/* Gives `inode` a name; NULL removes the name. */
void entries_put(struct entries *entries, const char *name, struct inode *inode);

void entries_copy(struct entries *to, const struct entries *from);

/* The same in a folder. Until the folder's next sync, only chance decides whether the change survives. With `more`,
 * the next change belongs to this one. */
void inode_change(struct inode *folder, const char *name, struct inode *inode, bool more);

/* Returns -EIO once if this fault was requested, otherwise 0. */
int disk_fault(struct disk *disk, enum sim_disk_fault which);

/* Whether a temporary output has this name. */
bool disk_is_output_name(const char *name);

/* The id of the exchange whose temporary output has this name. */
void disk_copy_id(char *id, const char *name);

/* The open file of a descriptor. It is a violation if there is none. */
struct inode *disk_at(const struct disk *disk, int fd);

/* Returns a descriptor for an inode. */
int disk_open(struct disk *disk, struct inode *inode);

/* The inode with this path below a folder; NULL if there is none. */
struct inode *disk_look_up(struct disk *disk, struct inode *folder, const char *path);
