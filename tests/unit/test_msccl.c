/* MSCCL's XML: written schedules are read back, and schedules of others become routes if they can be mapped. */
#include <unistd.h>

#include "client/cli/schedule_files/goal.h"
#include "client/cli/schedule_files/schedule_file.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/file/export.h"
#include "daemon/lib/schedule/file/imported.h"
#include "daemon/lib/schedule/plan.h"
#include "tests/support/cmocka.h"
#include "tests/unit/msccl_fixture.h"

TEST(every_exchange_is_read_back_leg_for_leg)
{
    static const char *const tori[] = {"1", "2", "2m", "5", "2x3", "3x5", "4x4", "3mx4", "16"};

    for (size_t i = 0; i < sizeof tori / sizeof *tori; i++)
        for (size_t k = 0; k < algorithm_count(); k++) {
            const struct algorithm *a = algorithm_at(k);
            struct torus t = msccl_torus(tori[i]);
            struct schedule_report report;
            struct leg leg[1000], other[1000];
            size_t length;
            if (a->operation != OPERATION_EXCHANGE || algorithm_accepts(a, &t, NULL) != 0)
                continue;
            char *xml = msccl_xml(&t, a->name, &length);
            struct imported *s = msccl_read_back(xml, length, &t, &report);
            assert_true(algorithm_max_legs(a, &t) < 1000);
            for (uint32_t from = 0; from < t.nodes; from++)
                for (uint32_t to = 0; to < t.nodes; to++)
                    for (uint32_t n = 0; n < a->segments && from != to; n++) {
                        uint32_t legs = algorithm_route(a, &t, from, to, n, leg);
                        assert_int_equal(
                            algorithm_route(imported_algorithm(s), &t, from, to, n, other), legs);
                        for (uint32_t m = 0; m < legs; m++) {
                            assert_int_equal(leg[m].step, other[m].step);
                            assert_int_equal(leg[m].dim, other[m].dim);
                            assert_int_equal(leg[m].direction, other[m].direction);
                            assert_int_equal(leg[m].hops, other[m].hops);
                        }
                    }
            imported_free(s);
            free(xml);
        }
}

TEST(allgathers_are_not_written)
{
    struct torus t = msccl_torus("3x3");
    struct error e;

    assert_fails(msccl_print(stdout, &t, algorithm_find("saadschultz"), &e), e, ERROR_USAGE, "");
}

TEST(programs_of_others_become_routes)
{
    struct torus t = msccl_torus("3");
    struct schedule_report report;
    struct leg leg[4];

    struct imported *s = msccl_read_back(BY_HAND, strlen(BY_HAND), &t, &report);
    const struct algorithm *a = imported_algorithm(s);
    assert_string_equal(imported_name(s), "by-hand-");
    assert_true(a->streaming);
    assert_int_equal(algorithm_route(a, &t, 0, 2, 0, leg), 2);
    assert_int_equal(leg[0].step, 0);
    assert_int_equal(leg[0].direction, 1);
    assert_int_equal(leg[1].step, 1);
    assert_int_equal(leg[1].direction, 1);
    assert_int_equal(algorithm_route(a, &t, 2, 0, 0, leg), 1);
    assert_int_equal(leg[0].direction, 1); /* the shortest path */
    assert_int_equal(report.startups, 3);  /* GPU 2 sends to 1 only after both receives */
    imported_free(s);
}

TEST(programs_without_a_mapping_are_refused)
{
    static const struct {
        const char *xml, *part, *other;
    } cases[] = {
        {"", "line 1: not XML", "no element found"},
        {"<algo", "line 1: not XML", "unclosed token"},
        {"hello", "line 1: not XML", "syntax error"},
        {"<algo coll=\"allgather\" ngpus=\"3\"/>", "line 1", "alltoall"},
        {"<algo coll=\"alltoall\" ngpus=\"4\"/>", "4 GPUs", "3 nodes of 3"},
        {"<algo coll=\"alltoall\" ngpus=\"3\" inplace=\"1\"/>", "out of place", "line 1"},
        {"<algo coll=\"alltoall\" ngpus=\"3\" torus=\"3m\"/>", "torus of 3m", "line 1"},
        {"<algo coll=\"alltoall\" ngpus=\"3\"/>", "GPU 0", "missing"},
        {"<algo coll=\"alltoall\" ngpus=\"3\">", "not XML", "no element found"},
        {"<algo coll=\"alltoall\" ngpus=\"3\"></gpu>", "line 1: not XML", "mismatched tag"},
        {ALGO "<tb id=\"0\"/>", "<gpu> is expected in <algo>", "<tb>"},
        {ALGO GPU0 GPU0, "GPU 0", "twice"},
        {ALGO "<gpu id=\"0\" i_chunks=\"4\" o_chunks=\"4\" s_chunks=\"0\">", "line 4", "multiple"},
        {ALGO GPU("0", "0") TB("1", "1", "-1"), "thread block 1", "0 is expected"},
        {ALGO GPU("0", "0") TB("0", "0", "-1"), "own peer", "line"},
        {ALGO GPU("0", "0") TB("0", "1", "-1") STEP("1", "s", "i", "0", "o", "0", NO), "step 1",
         "0 is expected"},
        {ALGO GPU("0", "0") TB("0", "1", "-1") STEP("0", "rrs", "i", "0", "o", "0", NO), "rrs",
         "only s, r, rcs, cpy and nop"},
        {ALGO GPU("0", "0") TB("0", "1", "-1") STEP("0", "r", "i", "0", "o", "0", NO), "\"r\"",
         "without a peer"},
        {ALGO GPU("0", "0") TB("0", "1", "-1") STEP("0", "s", "i", "3", "o", "0", NO),
         "buffer i of 3", "from 3 on"},
        {ALGO GPU("0", "0") TB("0", "1", "-1") STEP("0", "s", "x", "0", "o", "0", NO), "srcbuf",
         "line 7"},
        /* Dropped, doubled and misrouted. */
        {ALGO GPU0 GPU1 GPU2_HEAD STEP("1", "nop", "i", "0", "o", "0", NO) GPU2_TAIL "</algo>",
         "GPU 2, thread block 0", "never received"},
        {ALGO GPU0 GPU1 GPU2_HEAD STEP("1", "r", "i", "0", "o", "1", NO) GPU2_TAIL "</algo>",
         "block 0 -> 2, segment 0 arrives in chunk 1 of the output", "step 1"},
        {ALGO GPU0 GPU1 GPU2_HEAD STEP("1", "r", "i", "0", "o", "2", NO) GPU2_TAIL "</algo>",
         "block 0 -> 2, segment 0 does not reach GPU 2", ""},
        {ALGO GPU0 GPU("1", "1") "</gpu>" GPU2 "</algo>", "GPU 0, thread block 0",
         "no thread block receives"},
    };
    struct torus t = msccl_torus("3");

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        msccl_refused(cases[i].xml, &t, cases[i].part, cases[i].other);
}

static void replace(char *text, const char *what, const char *with)
{
    char *at = strstr(text, what);

    assert_non_null(at);
    memmove(at + strlen(with), at + strlen(what), strlen(at + strlen(what)) + 1);
    memcpy(at, with, strlen(with));
}

TEST(blocks_that_are_sent_twice_or_wait_for_ever_are_refused)
{
    struct torus t = msccl_torus("2x2");
    size_t length;
    char *xml = msccl_xml(&t, "direct", &length), *copy = malloc(length + 1000);

    /* A node sends a chunk again, and the chunk that should come does not. */
    memcpy(copy, xml, length + 1);
    replace(copy, "type=\"s\" srcbuf=\"i\" srcoff=\"2\" dstbuf=\"o\"",
            "type=\"s\" srcbuf=\"i\" srcoff=\"1\" dstbuf=\"o\"");
    msccl_refused(copy, &t, "block 0 -> 1, segment 0", "where block 0 -> 2, segment 0 belongs");
    memcpy(copy, xml, length + 1);
    replace(copy, "deps=\"0\"", "deps=\"9\"");
    msccl_refused(copy, &t, "step 9, which does not exist", "GPU");
    free(copy);
    free(xml);
    /* GPU 1 receives its block twice, and does not move the second copy. */
    copy = malloc(sizeof BY_HAND + 1000);
    memcpy(copy, BY_HAND, sizeof BY_HAND);
    replace(copy, "<gpu id=\"1\" i_chunks=\"3\" o_chunks=\"3\" s_chunks=\"1\">",
            "<gpu id=\"1\" i_chunks=\"3\" o_chunks=\"3\" s_chunks=\"2\">");
    replace(copy, "</tb>", STEP("2", "s", "i", "1", "s", "1", NO) "</tb >");
    char *second = strstr(copy, "id=\"1\" i_chunks");
    replace(second, "</tb>", STEP("2", "r", "i", "1", "s", "1", NO) "</tb >");
    msccl_refused(copy, &(struct torus){.dims = 1, .size = {3}, .wrap = {true}, .nodes = 3},
                  "block 0 -> 1, segment 0 is sent twice", "GPU 0 sends it in step 0");
    free(copy);
    msccl_refused(ALGO GPU("0", "0") TB("0", "1", "1")
                      STEP("0", "s", "i", "1", "o", "0", ON("0", "0")) "</tb></gpu>" GPU("1", "0")
                          TB("0", "0", "0") STEP("0", "r", "i", "1", "o", "0",
                                                 NO) "</tb></gpu>" GPU("2", "0") "</gpu></algo>",
                  &(struct torus){.dims = 1, .size = {3}, .wrap = {true}, .nodes = 3},
                  "waits for ever", "GPU 0");
}

TEST(schedules_of_too_many_legs_are_not_written)
{
    struct torus t = msccl_torus("128x128");
    struct error e;

    assert_fails(msccl_print(stdout, &t, algorithm_find("direct"), &e), e, ERROR_REFUSED,
                 "direct has more than 67108864 legs");
}

/* Otherwise the order of chunks would depend on the speed of each thread block. */
TEST(a_connection_has_one_thread_block_at_each_end)
{
    struct torus t = msccl_torus("3");

    msccl_refused(ALGO GPU("0", "0") TB("0", "1", "-1")
                      STEP("0", "s", "i", "1", "o", "0", NO) "</tb>" TB("1", "1", "-1")
                          STEP("0", "s", "i", "2", "s", "0", NO) "</tb></gpu>" GPU1 GPU2 "</algo>",
                  &t, "line 8: GPU 0, thread block 1 sends to GPU 1 on channel 0",
                  "as thread block 0 (line 6) does: it needs another channel");
    msccl_refused(ALGO GPU0 GPU("1", "1") TB("0", "-1", "0")
                      STEP("0", "r", "i", "1", "o", "0", NO) "</tb>\n" TB("1", "-1", "0")
                          STEP("0", "r", "i", "2", "s", "0", NO) "</tb></gpu>" GPU2 "</algo>",
                  &t, "GPU 1, thread block 1 receives from GPU 0 on channel 0",
                  "as thread block 0");
    /* A thread block that names a peer, and neither sends to it nor receives from it, does not count. */
    static const char idle[] = ALGO GPU("0", "0") TB("0", "1", "1") "</tb>" TB("1", "2", "2")
        STEP("0", "nop", "i", "0", "o", "0", NO) "</tb>";
    char *xml = malloc(sizeof idle + sizeof BY_HAND);
    assert_non_null(xml);
    (void)strcpy(xml, idle);
    char *end = xml + strlen(xml);
    const char *rest = strstr(GPU0, "<tb");
    for (const char *p = rest; *p != '\0';) {
        /* The thread blocks of GPU 0 come after two more. */
        if (strncmp(p, "<tb id='", 8) == 0) {
            end += sprintf(end, "<tb id='%c", p[8] + 2);
            p += 9;
        } else {
            *end++ = *p++;
        }
    }
    (void)strcpy(end, GPU1 GPU2 "</algo>");
    imported_free(msccl_read_back(xml, strlen(xml), &t, &(struct schedule_report){0}));
    free(xml);
}

#define EMPTY_GPUS GPU("1", "0") "</gpu>" GPU("2", "0") "</gpu></algo>"
#define WAITS(s, block, step) STEP(s, "nop", "i", "0", "o", "0", ON(block, step))

TEST(what_a_step_waits_for_is_named)
{
    struct torus t = msccl_torus("3");

    msccl_refused(ALGO GPU("0", "0") TB("0", "-1", "-1")
                      WAITS("0", "1", "0") "</tb></gpu>" EMPTY_GPUS,
                  &t, "line 7: GPU 0, thread block 0, step 0",
                  "it depends on thread block 1, which does not exist");
    msccl_refused(ALGO GPU("0", "0") TB("0", "-1", "-1") WAITS("0", "-1", "-1")
                      WAITS("1", "0", "2") "</tb></gpu>" EMPTY_GPUS,
                  &t, "line 8: GPU 0, thread block 0, step 1",
                  "it depends on thread block 0, step 2, which does not exist");
    msccl_refused(ALGO GPU("0", "0") TB("0", "-1", "-1")
                      WAITS("0", "0", "-1") "</tb></gpu>" EMPTY_GPUS,
                  &t, "line 7: GPU 0, thread block 0, step 0",
                  "it depends on thread block 0, step -1, which does not exist");
    msccl_refused(ALGO GPU("0", "0") TB("0", "-1", "-1")
                      WAITS("0", "1", "0") "</tb>" TB("1", "-1", "-1")
                          WAITS("0", "0", "0") "</tb></gpu>" EMPTY_GPUS,
                  &t, "line 7: GPU 0, thread block 0, step 0",
                  "it waits for ever for thread block 1, step 0");
    msccl_refused(ALGO GPU("0", "0") TB("0", "-1", "1")
                      STEP("0", "r", "i", "0", "o", "1", NO) "</tb></gpu>" EMPTY_GPUS,
                  &t, "line 7: GPU 0, thread block 0, step 0",
                  "of the 1 chunks that it receives from GPU 1 on channel 0, 0 come");
}

TEST(peers_have_to_be_in_a_straight_line)
{
    struct torus t = msccl_torus("2x2");

    msccl_refused(
        "<algo coll=\"alltoall\" ngpus=\"4\">"
        "<gpu id=\"0\" i_chunks=\"4\" o_chunks=\"4\" s_chunks=\"0\">"
        "<tb id=\"0\" send=\"3\" recv=\"-1\" chan=\"0\">"
        "<step s=\"0\" type=\"s\" srcbuf=\"i\" srcoff=\"3\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" "
        "depid=\"-1\" deps=\"-1\"/></tb></gpu>"
        "<gpu id=\"1\" i_chunks=\"4\" o_chunks=\"4\" s_chunks=\"0\"/>"
        "<gpu id=\"2\" i_chunks=\"4\" o_chunks=\"4\" s_chunks=\"0\"/>"
        "<gpu id=\"3\" i_chunks=\"4\" o_chunks=\"4\" s_chunks=\"0\">"
        "<tb id=\"0\" send=\"-1\" recv=\"0\" chan=\"0\">"
        "<step s=\"0\" type=\"r\" srcbuf=\"i\" srcoff=\"3\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" "
        "depid=\"-1\" deps=\"-1\"/></tb></gpu></algo>",
        &t, "node 3 is not in a straight line", "GPU 0, thread block 0, step 0");
}

/* Malicious XML and XML of other kinds are refused with the line number. */

#define OPEN_BLOCK ALGO GPU("0", "0") TB("0", "1", "-1")
#define NOTHING STEP("0", "nop", "i", "0", "o", "0", NO)

/* A step outside of a thread block. */
TEST(a_step_inside_a_copy_is_refused)
{
    struct torus t = msccl_torus("3");

    msccl_refused(ALGO GPU("0", "0") "<copy>\n" NOTHING "</copy>", &t, "line 7",
                  "<copy> must be empty, but contains <step>");
    msccl_refused(ALGO GPU0 GPU("1", "0") "<copy>\n" NOTHING "</copy>", &t, "line",
                  "<copy> must be empty, but contains <step>");
    msccl_refused(ALGO GPU("0", "0") "<copy>" TB("0", "1", "-1") NOTHING "</tb></copy>", &t,
                  "line 6", "contains <tb>");
    msccl_refused(ALGO GPU("0", "0") "<copy><copy/></copy>", &t, "line 6", "contains <copy>");
}

TEST(elements_stay_where_they_belong)
{
    static const struct {
        const char *xml, *part, *other;
    } cases[] = {
        {"<schedule/>", "line 1", "<algo> is expected as the outermost element, not <schedule>"},
        {"<tb id='0'/>", "line 1", "not <tb>"},
        {ALGO "<algo/>", "line 4", "<gpu> is expected in <algo>, not <algo>"},
        {ALGO "\n<tb id='0'/>", "line 5", "<gpu> is expected in <algo>, not <tb>"},
        {ALGO "<step/>", "line 4", "not <step>"},
        {ALGO GPU("0", "0") "<gpu/>", "line 6", "<tb> or <copy> is expected in <gpu>, not <gpu>"},
        {ALGO GPU("0", "0") NOTHING, "line 6", "in <gpu>, not <step>"},
        {OPEN_BLOCK "<copy/>", "line 7", "<step> is expected in <tb>, not <copy>"},
        {OPEN_BLOCK TB("1", "-1", "1"), "line 7", "not <tb>"},
        {OPEN_BLOCK "<step s='0' type='nop' depid='-1' deps='-1'><step/></step>", "line 7",
         "<step> must be empty, but contains <step>"},
        {OPEN_BLOCK "</tb></gpu>\n<a-name-that-is-longer-than-errors-are/>", "line 8",
         "not <a-name-that-is-longe>"},
        /* Prefixes are part of a name: nothing of MSCCL's has one. */
        {"<m:algo xmlns:m='urn:msccl' coll='alltoall' ngpus='3'/>", "line 1", "not <m:algo>"},
        {OPEN_BLOCK "<m:step/>", "line 7", "not <m:step>"},
        {"<algo m:coll='alltoall' ngpus='3'/>", "line 1", "coll"},
        {ALGO "text", "line 4", "text in <algo>, where only elements are possible: \"text\""},
        {ALGO GPU("0", "0") " \t\n <![CDATA[more of it]]>", "line 7", "\"more of it\""},
        {OPEN_BLOCK "&lt;step/&gt;", "line 7", "text in <tb>"},
    };
    struct torus t = msccl_torus("3");

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        msccl_refused(cases[i].xml, &t, cases[i].part, cases[i].other);
}

TEST(document_types_are_refused)
{
    static const char *const types[] = {
        "<!DOCTYPE algo>",
        "<!DOCTYPE algo SYSTEM 'file:///etc/passwd'>",
        "<!DOCTYPE algo PUBLIC '-//W3C//DTD' 'http://localhost/'>",
        "<!DOCTYPE algo [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>",
        "<!DOCTYPE algo [<!ENTITY % a SYSTEM 'file:///etc/passwd'> %a;]>",
        "<!DOCTYPE algo [<!ATTLIST step cnt CDATA '1'>]>",
        "<!DOCTYPE algo [<!ENTITY a 'aaaaaaaaaa'> <!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;'>"
        "<!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;&b;'> <!ENTITY d '&c;&c;&c;&c;&c;&c;&c;&c;&c;'>"
        "<!ENTITY e '&d;&d;&d;&d;&d;&d;&d;&d;&d;'> <!ENTITY f '&e;&e;&e;&e;&e;&e;&e;&e;&e;'>]>",
    };
    struct torus t = msccl_torus("3");

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char xml[4096];
        (void)snprintf(xml, sizeof xml, "<?xml version='1.0'?>\n%s\n<algo name='%s' ngpus='3'/>",
                       types[i], i == 6 ? "&f;" : "a");
        msccl_refused(xml, &t, "line 2: <!DOCTYPE algo>", "remove this declaration");
    }
    msccl_refused("<algo name='&other;'/>", &t, "line 1: not XML", "undefined entity");
}

/* BY_HAND in UTF-16 with a mark of the byte order. */
static char *in_utf16(bool big_endian, size_t *length)
{
    static const char text[] = BY_HAND;
    char *wide = malloc(2 * sizeof text), *at = wide;

    assert_non_null(wide);
    *at++ = (char)(big_endian ? 0xfe : 0xff);
    *at++ = (char)(big_endian ? 0xff : 0xfe);
    for (const char *p = text; *p != '\0'; p++) {
        *at++ = big_endian ? '\0' : *p;
        *at++ = big_endian ? *p : '\0';
    }
    *length = (size_t)(at - wide);
    return wide;
}

TEST(encodings_are_detected)
{
    struct torus t = msccl_torus("3");
    struct schedule_report report;
    size_t length;

    for (int big_endian = 0; big_endian < 2; big_endian++) {
        char *xml = in_utf16(big_endian, &length);
        imported_free(msccl_read_back(xml, length, &t, &report));
        free(xml);
    }
    static const char marked[] = "\xef\xbb\xbf" BY_HAND;
    imported_free(msccl_read_back(marked, sizeof marked - 1, &t, &report));
    msccl_refused("<?xml version='1.0' encoding='x-unknown'?><algo/>", &t, "line 1: not XML",
                  "unknown encoding");
    msccl_refused("<?xml version='1.0' encoding='UTF-16'?><algo/>", &t, "line 1: not XML",
                  "encoding");
    msccl_refused("<algo name='\xff\xfe'/>", &t, "line 1: not XML", "invalid token");
    msccl_refused("<algo name='\x1b[2J'/>", &t, "line 1: not XML", "invalid token");
    /* Quoted text is made printable: a control character of Latin-1, and half a character. */
    msccl_refused("<algo coll='alltoall' ngpus='&#x9b;2J'/>", &t, "ngpus=\"??2J\"", "line 1");
    msccl_refused("<algo coll='alltoall' ngpus='&#10;3'/>", &t, "ngpus=\"?3\"", "line 1");
}

/* `count` times `part` between a beginning and an end, to be freed by the caller. */
static char *repeated(const char *begin, const char *part, size_t count, const char *end)
{
    size_t length = strlen(begin), once = strlen(part);
    char *text = malloc(length + count * once + strlen(end) + 1), *at = text + length;

    assert_non_null(text);
    memcpy(text, begin, length);
    for (size_t i = 0; i < count; i++, at += once)
        memcpy(at, part, once);
    memcpy(at, end, strlen(end) + 1);
    return text;
}

TEST(programs_that_take_too_much_memory_are_refused)
{
    struct torus t = msccl_torus("3");
    const size_t much = 3u << 20;
    char *xml;

    xml = repeated(ALGO, "<gpu>", much, "");
    msccl_refused(xml, &t, "line 4: ", "");
    free(xml);
    xml = repeated(ALGO GPU("0", "0") "<copy>", "<copy>", much, "");
    msccl_refused(xml, &t, "line 6: <copy> must be empty", "");
    free(xml);
    xml = repeated("<!--", "comment", much / 7, "-->\n" BY_HAND);
    msccl_refused(xml, &t, "line 1: ", "a comment, takes more than 1024 KiB");
    free(xml);
    xml = repeated("<algo name='", "a", much, "' coll='alltoall' ngpus='3'/>");
    msccl_refused(xml, &t, "line 1: ", "an element with its attributes");
    free(xml);
    xml = repeated("<", "a", much, "/>");
    msccl_refused(xml, &t, "line 1: ", "takes more than 1024 KiB");
    free(xml);
}

/* Attributes with names of their own take far more memory than text. */
TEST(many_attributes_are_refused)
{
    struct torus t = msccl_torus("3");
    char *xml, *at;

    xml = malloc(1 << 20);
    assert_non_null(xml);
    at = xml + sprintf(xml, "<algo");
    for (int i = 0; i < 50000; i++)
        at += sprintf(at, " a%d=''", i);
    memcpy(at, "/>", 3);
    msccl_refused(xml, &t, "line 1: ", "takes more than 1024 KiB");
    free(xml);
    /* A hundred are fine. */
    xml = malloc(sizeof BY_HAND + 4096);
    assert_non_null(xml);
    at = xml + sprintf(xml, "<algo");
    for (int i = 0; i < 100; i++)
        at += sprintf(at, " a%d='%d'", i, i);
    (void)strcpy(at, strstr(BY_HAND, "<algo") + 5);
    imported_free(msccl_read_back(xml, strlen(xml), &t, &(struct schedule_report){0}));
    free(xml);
}

/* Files with schedules: finding their format, and files that are refused. */

#define OWN                                                                                        \
    "{\"schedule\":1,\"dims\":\"2m\"}\n"                                                           \
    "{\"src\":0,\"dst\":1,\"legs\":[[0,0,1,1]]}\n"                                                 \
    "{\"src\":1,\"dst\":0,\"legs\":[[0,0,-1,1]]}\n"

static const char *path;

static void taken(const char *text, size_t length, const char *dims)
{
    struct torus t = msccl_torus(dims);
    struct schedule_file file;
    struct error e;

    path = file_of(text, length);
    assert_success(schedule_file_read(&file, path, &t, &e), e);
    assert_contains(file.text, "\"schedule\":1");
    assert_int_equal(imported_torus(file.imported)->nodes, t.nodes);
    schedule_file_free(&file);
}

static void refused(const char *text, size_t length, const struct torus *t, const char *part)
{
    struct schedule_file file;
    struct error e;

    path = file_of(text, length);
    assert_int_equal(schedule_file_read(&file, path, t, &e), -1);
    assert_null(file.text);
    assert_null(file.imported);
    if (strncmp(e.text, path, strlen(path)) != 0 || strstr(e.text, part) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", part, e.text);
}

/* A text of ASCII characters in UTF-16, to be freed by the caller. */
static char *wide_text(const char *text, bool big_endian, bool marked, size_t *length)
{
    char *wide = malloc(2 * strlen(text) + 2), *at = wide;

    assert_non_null(wide);
    if (marked) {
        *at++ = (char)(big_endian ? 0xfe : 0xff);
        *at++ = (char)(big_endian ? 0xff : 0xfe);
    }
    for (const char *p = text; *p != '\0'; p++) {
        *at++ = big_endian ? '\0' : *p;
        *at++ = big_endian ? *p : '\0';
    }
    *length = (size_t)(at - wide);
    return wide;
}

TEST(the_format_is_found_in_any_encoding)
{
    static const char marked[] = "\xef\xbb\xbf" BY_HAND, spaced[] = " \r\n\t<!-- -->" BY_HAND;
    const char *bare = strstr(BY_HAND, "<algo");

    taken(OWN, strlen(OWN), "2m");
    taken(BY_HAND, strlen(BY_HAND), "3");
    taken(marked, sizeof marked - 1, "3");
    for (int way = 0; way < 4; way++) {
        /* Without a mark, an XML declaration shows which byte comes first. */
        size_t length;
        char *wide = wide_text(BY_HAND, way % 2 != 0, way < 2, &length);
        taken(wide, length, "3");
        free(wide);
    }
    taken(bare, strlen(bare), "3");
    refused(spaced, sizeof spaced - 1,
            &(struct torus){.dims = 1, .size = {3}, .wrap = {true}, .nodes = 3}, "not XML");
}

TEST(lines_that_make_no_schedule_are_refused)
{
    static const char marks[] = "\xef\xbb\xbf \n";
    struct torus t = msccl_torus("3");

    refused("", 0, &t, "the schedule is empty");
    refused("\0\0\0\0", 4, &t, "line 1");
    refused("\xff\xfe", 2, &t, "this is UTF-16");
    refused(marks, sizeof marks - 1, &t, "the schedule is empty");
    refused(BY_HAND, strlen(BY_HAND), NULL, "give --dims");
    refused(OWN, strlen(OWN), &t, "for a torus of 2m, not 3");
}

TEST(files_that_cannot_be_read_are_refused)
{
    struct torus t = msccl_torus("3");
    struct schedule_file file;
    struct error e;

    path = file_of("<", 1);
    assert_int_equal(truncate(path, (64 << 20) + 1), 0);
    assert_fails(schedule_file_read(&file, path, &t, &e), e, ERROR_REFUSED,
                 "longer than the 64 MiB that a schedule can have");
    assert_fails(schedule_file_read(&file, "/", &t, &e), e, ERROR_IO, "");
    assert_string_equal(e.text, "/: a folder cannot be read as a schedule");
    assert_fails(schedule_file_read(&file, "/nothing/there", &t, &e), e, ERROR_IO, "");
}

/* GOAL: every node's messages are those of its plan, in the order of steps. */

#define BLOCK 1001u /* bytes: not a multiple of any number of segments above 1 */

static uint64_t bytes_of(const struct plan *p, const struct plan_message *m, uint32_t segments)
{
    uint64_t stride = (BLOCK + segments - 1) / segments, sum = 0;

    for (uint32_t i = 0; i < m->blocks; i++) {
        uint64_t begin = p->block[m->first + i].segment * stride;
        if (begin < BLOCK)
            sum += BLOCK - begin < stride ? BLOCK - begin : stride;
    }
    return sum;
}

static void expect_message(FILE *out, const struct torus *t, const struct plan *p,
                           const struct plan_message *m, uint32_t segments, bool sends)
{
    unsigned dim = torus_port_dim(t, m->port),
             port = sends ? m->port : torus_port_opposite(t, m->port);
    uint32_t peer = torus_walk(t, p->rank, dim, torus_port_direction(t, m->port), m->hops);

    (void)fprintf(out, "%s %lub %s %u tag %u nic %u\n", sends ? "send" : "recv",
                  (unsigned long)bytes_of(p, m, segments), sends ? "to" : "from", peer,
                  m->step * TORUS_MAX_PORTS + port, (unsigned)m->port);
}

/* A node's messages by its plan, one in each line. */
static void expect_node(FILE *out, const struct torus *t, const struct algorithm *a, uint32_t rank)
{
    uint32_t send = 0, arrival = 0;
    struct plan p;

    assert_int_equal(plan_build(&p, t, a, rank, NULL), 0);
    (void)fprintf(out, "rank %u {\n", rank);
    for (uint32_t step = 0; step < p.steps; step++) {
        for (; send < p.sends && p.send[send].step == step; send++)
            expect_message(out, t, &p, &p.send[send], a->segments, true);
        for (; arrival < p.arrivals && p.arrival[arrival].step == step; arrival++)
            if (p.arrival[arrival].left == 0)
                expect_message(out, t, &p, &p.arrival[arrival], a->segments, false);
    }
    plan_free(&p);
}

static char *expected(const struct torus *t, const struct algorithm *a)
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        expect_node(out, t, a, rank);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* The lines of GOAL that begin a node or are messages, without labels. */
static char *printed(const struct torus *t, const struct algorithm *a)
{
    char *goal, *text, *rest;
    size_t length;
    struct error e;
    FILE *out = open_memstream(&goal, &length);

    assert_non_null(out);
    assert_success(goal_print(out, t, a, BLOCK, &e), e);
    assert_int_equal(fclose(out), 0);
    out = open_memstream(&text, &length);
    assert_non_null(out);
    for (char *line = strtok_r(goal, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *what = strstr(line, ": ");
        if (strncmp(line, "rank ", 5) == 0)
            (void)fprintf(out, "%s\n", line);
        else if (what != NULL &&
                 (strncmp(what, ": send", 6) == 0 || strncmp(what, ": recv", 6) == 0))
            (void)fprintf(out, "%s\n", what + 2);
    }
    assert_int_equal(fclose(out), 0);
    free(goal);
    return text;
}

static void check(const struct torus *t, const struct algorithm *a)
{
    char *wanted = expected(t, a), *found = printed(t, a);

    assert_string_equal(found, wanted);
    free(wanted);
    free(found);
}

/* The same routes from a file that names them all, so that no node is like another one. */
static void check_without_period(const struct torus *t, const struct algorithm *a)
{
    struct imported *s;
    struct error e;
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    assert_int_equal(schedule_export(out, t, a, false, &e), 0);
    assert_int_equal(fclose(out), 0);
    assert_success(imported_read(&s, text, length, t, NULL, &e), e);
    check(t, imported_algorithm(s));
    imported_free(s);
    free(text);
}

TEST(messages_are_those_of_the_plans)
{
    static const char *const tori[] = {"1", "2", "3", "2x2", "4x4", "3x5", "4mx3", "8", "2x3x4"};

    for (size_t i = 0; i < sizeof tori / sizeof *tori; i++)
        for (size_t k = 0; k < algorithm_count(); k++) {
            const struct algorithm *a = algorithm_at(k);
            struct torus t;
            assert_int_equal(torus_parse(&t, tori[i], NULL), 0);
            if (algorithm_accepts(a, &t, NULL) != 0)
                continue;
            check(&t, a);
            check_without_period(&t, a);
        }
}
