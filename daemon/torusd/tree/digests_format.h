/* Lengths in the document TREE_DIGESTS; digests.h describes it. */
#pragma once

#include "daemon/torusd/tree/digests.h"

#define DIGESTS_MAGIC "TORUSDIG" /* 8 bytes */
#define DIGESTS_VERSION 1u
#define DIGESTS_VERSION_FAST 2u
#define DIGESTS_HEAD 16u
#define DIGESTS_HEAD_FAST (DIGESTS_HEAD + 8u)
#define DIGESTS_CHUNK (4u + FILE_DIGEST)
#define DIGESTS_NO_FILE UINT64_MAX
#define DIGESTS_LEAST (DIGESTS_HEAD + 8u + FILE_DIGEST) /* of a document */
