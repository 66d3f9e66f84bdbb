/* MSCCL's XML: written schedules are read back, and schedules of others become routes if they can be mapped. */
#include "daemon/lib/schedule/algorithms/registry.h"
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

    assert_int_equal(msccl_print(stdout, &t, algorithm_find("saadschultz"), &e), -1);
    assert_int_equal(e.code, ERROR_USAGE);
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
    assert_int_equal(leg[0].direction, 1); /* the shortest way */
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

    assert_int_equal(msccl_print(stdout, &t, algorithm_find("direct"), &e), -1);
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_non_null(strstr(e.text, "direct has more than 67108864 legs"));
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
        &t, "GPU 3 is not in a straight line", "GPU 0, thread block 0, step 0");
}
