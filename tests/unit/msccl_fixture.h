/* Shared by the tests of MSCCL's XML: writing and reading it, and a schedule by hand. */
#pragma once

#include "client/cli/schedule_files/msccl.h"
#include "daemon/lib/schedule/file/imported.h"
#include "tests/support/cmocka.h"

struct torus msccl_torus(const char *dims);

/* The XML of an algorithm, to be freed by the caller. */
char *msccl_xml(const struct torus *t, const char *algorithm, size_t *length);

/* Reads XML, which must be accepted. */
struct imported *msccl_read_back(const char *xml, size_t length, const struct torus *t,
                                 struct schedule_report *report);

/* Fails the test unless the XML is refused with an error that contains both texts. */
void msccl_refused(const char *xml, const struct torus *t, const char *part, const char *other);

/* A schedule on a ring of three as a generator would write it: the block of GPU 0 for GPU 2 goes through GPU 1, all
 * others directly. */
#define ALGO                                                                                       \
    "<?xml version=\"1.0\"?>\n<!-- a <comment> -->\n<algo name=\"by hand!\" nchannels=\"1\" "      \
    "nchunksperloop=\"3\" proto=\"Simple\" ngpus=\"3\" coll=\"alltoall\" inplace=\"0\">\n"
#define GPU(id, scratch)                                                                           \
    "<gpu id=\"" id "\" i_chunks=\"3\" o_chunks=\"3\" s_chunks=\"" scratch "\">\n"                 \
    "<copy i_off=\"" id "\" o_off=\"" id "\"/>\n"
#define TB(id, send, recv) "<tb id='" id "' send='" send "' recv='" recv "' chan='0'>\n"
#define STEP(s, type, from, fromat, to, toat, after)                                               \
    "<step s=\"" s "\" type=\"" type "\" srcbuf=\"" from "\" srcoff=\"" fromat "\" dstbuf=\"" to   \
    "\" dstoff=\"" toat "\" cnt=\"1\" " after " hasdep=\"0\"/>\n"
#define ON(block, step) "depid=\"" block "\" deps=\"" step "\""
#define NO ON("-1", "-1")
#define GPU0                                                                                       \
    GPU("0", "0")                                                                                  \
    TB("0", "1", "-1")                                                                             \
    STEP("0", "s", "i", "1", "o", "0", NO)                                                         \
    STEP("1", "s", "i", "2", "s", "0", NO)                                                         \
    "</tb>\n" TB("1", "-1", "1")                                                                   \
        STEP("0", "r", "i", "0", "o", "1", NO) "</tb>\n" TB("2", "-1", "2")                        \
            STEP("0", "r", "i", "0", "o", "2", NO) "</tb>\n</gpu>\n"
#define GPU1                                                                                       \
    GPU("1", "1")                                                                                  \
    TB("0", "-1", "0")                                                                             \
    STEP("0", "r", "i", "1", "o", "0", NO)                                                         \
    STEP("1", "r", "i", "2", "s", "0", NO)                                                         \
    "</tb>\n" TB("1", "2", "2") STEP("0", "s", "i", "2", "o", "1", NO)                             \
        STEP("1", "s", "s", "0", "o", "0", ON("0", "1")) STEP("2", "r", "i", "1", "o", "2", NO)    \
            STEP("3", "nop", "i", "0", "o", "0", ON("0", "1")) "</tb>\n" TB("2", "0", "-1")        \
                STEP("0", "s", "i", "0", "o", "1", NO) "</tb>\n</gpu>\n"
#define GPU2_HEAD GPU("2", "0") TB("0", "1", "1") STEP("0", "r", "i", "2", "o", "1", NO)
#define GPU2_TAIL                                                                                  \
    STEP("2", "s", "i", "1", "o", "2", NO)                                                         \
    "</tb>\n" TB("1", "0", "-1") STEP("0", "s", "i", "0", "o", "2", NO) "</tb>\n</gpu>\n"
#define GPU2 GPU2_HEAD STEP("1", "r", "s", "0", "o", "0", NO) GPU2_TAIL
#define BY_HAND ALGO GPU0 GPU1 GPU2 "</algo>\n"
