/* Schedules of TE-CCL and ForestColl: small files become the routes that their texts say, all others are refused. */
#include "client/cli/schedule_files/forestcoll.h"
#include "client/cli/schedule_files/teccl.h"
#include "daemon/lib/schedule/file/imported.h"
#include "tests/support/cmocka.h"
#include "tests/unit/msccl_fixture.h"

typedef int (*reader_fn)(const char *text, size_t length, const struct torus *t, char **routes,
                         size_t *routes_length, struct error *e);

/* Fails the test unless the text becomes these routes, and they are a right schedule. */
static void becomes(reader_fn read, const char *text, const char *dims, const char *routes)
{
    struct torus t = msccl_torus(dims);
    struct imported *s;
    char *found;
    size_t length;
    struct error e;

    assert_success(read(text, strlen(text), &t, &found, &length, &e), e);
    assert_string_equal(found, routes);
    assert_success(imported_read(&s, found, length, &t, NULL, &e), e);
    imported_free(s);
    free(found);
}

/* Fails the test unless the text is refused, by its reader or as a schedule, with an error that contains both parts. */
static void refused(reader_fn read, const char *text, const char *dims, const char *part,
                    const char *other)
{
    struct torus t = msccl_torus(dims);
    struct imported *s = NULL;
    char *routes = NULL;
    size_t length;
    struct error e;

    if (read(text, strlen(text), &t, &routes, &length, &e) == 0 &&
        imported_read(&s, routes, length, &t, NULL, &e) == 0)
        fail_msg("taken: %.200s", text);
    if (strstr(e.text, part) == NULL || strstr(e.text, other) == NULL)
        fail_msg("\"%s\" or \"%s\" is not in \"%s\"", part, other, e.text);
    free(routes);
}

/* --- ForestColl --- */

#define FOREST "<Algo nchunkspernode=\"1\">\n"
#define TREE(root, chunks)                                                                         \
    "<tree root=\"" root "\" index=\"0\" nchunks=\"" chunks "\" height=\"1\">\n"
#define SEND(from, to) "<send src=\"" from "\" dst=\"" to "\" path=\"" from "," to "\"/>\n"
#define END "</tree>\n"
#define HEADER(name, operation, mode, segments)                                                    \
    "{\"schedule\":1,\"dims\":\"3m\",\"name\":\"" name "\",\"operation\":\"" operation             \
    "\",\"ports\":\"all-port\",\"mode\":\"" mode "\",\"segments\":" segments "}\n"
#define ROUTE(src, dst, segment, legs)                                                             \
    "{\"src\":" src ",\"dst\":" dst ",\"segment\":" segment ",\"legs\":[" legs "]}\n"
#define TREE_OF_0 TREE("0", "1") SEND("0", "1") SEND("1", "2") END
#define TREE_OF_1 TREE("1", "1") SEND("1", "0") SEND("1", "2") END
#define TREE_OF_2 TREE("2", "1") SEND("1", "0") SEND("2", "1") END
#define TREES FOREST TREE_OF_2 TREE_OF_0 TREE_OF_1 "</Algo>"

TEST(trees_become_an_allgather)
{
    becomes(forestcoll_read, TREES, "3m",
            HEADER("forestcoll", "allgather", "streaming", "1")
                ROUTE("2", "0", "0", "[0,0,-1,1],[1,0,-1,1]") ROUTE("2", "1", "0", "[0,0,-1,1]")
                    ROUTE("0", "1", "0", "[0,0,1,1]") ROUTE("0", "2", "0", "[0,0,1,1],[1,0,1,1]")
                        ROUTE("1", "0", "0", "[0,0,-1,1]") ROUTE("1", "2", "0", "[0,0,1,1]"));
}

/* The nodes are numbered as their trees come; a path over switches is one send; two trees share a root's chunks. */
TEST(names_switches_and_chunks)
{
#define A "(0, 'GPU', 7)"
#define B "(1, 'GPU', 7)"
#define FROM_TO(from, to)                                                                          \
    "<send src=\"" from "\" dst=\"" to "\" path=\"" from ",(-1, 'IB', 0),sw," to "\"/>\n"
    becomes(forestcoll_read,
            "<?xml version=\"1.0\"?><Algo nchunkspernode=\"3\">" TREE(A, "2") FROM_TO(A, B)
                END TREE(A, "1") FROM_TO(A, B) END TREE(B, "3") FROM_TO(B, A) END "</Algo>",
            "2m",
            "{\"schedule\":1,\"dims\":\"2m\",\"name\":\"forestcoll\",\"operation\":\"allgather\","
            "\"ports\":\"all-port\",\"mode\":\"streaming\",\"segments\":3}\n" ROUTE(
                "0", "1", "0", "[0,0,1,1]") ROUTE("0", "1", "1", "[0,0,1,1]")
                ROUTE("0", "1", "2", "[0,0,1,1]") ROUTE("1", "0", "0", "[0,0,-1,1]")
                    ROUTE("1", "0", "1", "[0,0,-1,1]") ROUTE("1", "0", "2", "[0,0,-1,1]"));
}

TEST(trees_that_are_no_schedule_are_refused)
{
    static const struct {
        const char *xml, *part, *other;
    } cases[] = {
        {"<Algo", "line 1: not XML", ""},
        {"<algo/>", "<Algo> is expected", ""},
        {"<Algo/>", "line 1", "nchunkspernode"},
        {"<Algo nchunkspernode=\"257\"/>", "line 1", "from 1 to 256"},
        {"<Algo nchunkspernode=\"1\"/>", "0 different roots", "3m has 3 nodes"},
        {FOREST TREE_OF_0 TREE_OF_1 TREE("2", "1") END "</Algo>", "the tree has 0 sends",
         "line 10"},
        {FOREST TREE_OF_0 TREE_OF_1 "</Algo>", "2 different roots", "3 nodes"},
        {FOREST "<tree root=\"0\" nchunks=\"2\"/></Algo>", "line 2", "nchunks=\"2\""},
        {FOREST "<tree nchunks=\"1\"/></Algo>", "line 2", "no attribute root"},
        {FOREST TREE("0", "1") "<send src=\"0\" dst=\"1\"/>", "line 3", "no attribute path"},
        {FOREST TREE_OF_0 TREE_OF_0 TREE_OF_1 TREE_OF_2 "</Algo>", "line 6", "more than"},
        {FOREST TREE_OF_0 TREE_OF_1 TREE("2", "1") SEND("1", "0") SEND("0", "1") END "</Algo>",
         "line 11", "go in a circle"},
        {FOREST TREE_OF_0 TREE_OF_1 TREE("2", "1") SEND("2", "1") SEND("2", "1") END "</Algo>",
         "line 12", "a second send to 1"},
        {FOREST TREE_OF_0 TREE_OF_1 TREE("2", "1") SEND("2", "1") SEND("1", "2") END "</Algo>",
         "line 12", "a send to the root"},
        {FOREST TREE_OF_0 TREE_OF_1 TREE("2", "1") SEND("2", "1") SEND("1", "9") END "</Algo>",
         "line 12", "9 is the root of no tree"},
        {FOREST TREE_OF_0 TREE_OF_1 TREE("2", "1")
             SEND("2", "1") "<send src=\"1\" dst=\"0\" path=\"1,2,0\"/>" END "</Algo>",
         "line 12", "goes over the node 2"},
        {FOREST TREE_OF_0 TREE_OF_1 TREE("2", "1")
             SEND("2", "1") "<send src=\"1\" dst=\"0\" path=\"2,0\"/>" END "</Algo>",
         "line 12", "does not begin at 1"},
        {FOREST TREE_OF_0 TREE_OF_1 TREE("2", "1")
             SEND("2", "1") "<send src=\"1\" dst=\"0\" path=\"1,((2\"/>" END "</Algo>",
         "line 12", "does not end at 0"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(forestcoll_read, cases[i].xml, "3m", cases[i].part, cases[i].other);
    refused(forestcoll_read, TREES, "star:3", "line 4: node 1 is not a neighbour of node 2",
            "on star:3");
    refused(forestcoll_read, "<Algo nchunkspernode=\"256\"/>", "65", "line 1", "more routes");
}

/* --- TE-CCL --- */

#define DEMAND(at, chunk, from, paths)                                                             \
    "\"Demand at " at " for chunk " chunk " from " from " met by epoch 9\": " paths ","
#define HALVES                                                                                     \
    "\"Demand at 4 for chunk 2 from 2 met by epoch 9\": [[[0, \"2->4 with volume 0.5 in epoch "    \
    "0\"]], [[7, \"2->4 with volume 0.499999 in epoch 7\"]]]"

/* GPUs are 1, 2 and 4, devices 0 and 3 are switches. */
#define DEMANDS(last)                                                                              \
    "{\"7-chunk paths\": {" DEMAND("1", "0", "2", "[[[4, \"2->1 with volume 1.0 in epoch 4\"]]]")  \
        DEMAND("1", "0", "4",                                                                      \
               "[[[0, \"4->2 with volume 1.0 in epoch 0\"], "                                      \
               "[5, \"2->1 with volume 1.0 in epoch 5 via switches 0->3\"]]]")                     \
            DEMAND("2", "1", "1", "[[[0, \"1->2 with volume 1.0 in epoch 0\"]]]")                  \
                DEMAND("2", "1", "4", "[[[1, \"4->2 with volume 1.0 in epoch 1\"]]]")              \
                    DEMAND("4", "2", "1",                                                          \
                           "[[[1, \"1->2 with volume 1.0 in epoch 1\"], "                          \
                           "[2, \"2->4 with volume 1.0 in epoch 2\"]]]") last                      \
        "}, "                                                                                      \
        "\"6-Flows\": [\"not read\"]}"

TEST(chunk_paths_with_volumes_become_an_exchange)
{
    becomes(teccl_read, DEMANDS(HALVES), "3m",
            HEADER("te-ccl", "exchange", "stepped", "2") ROUTE("0", "1", "0", "[0,0,1,1]")
                ROUTE("0", "1", "1", "[0,0,1,1]") ROUTE("0", "2", "0", "[1,0,1,1],[2,0,1,1]")
                    ROUTE("0", "2", "1", "[1,0,1,1],[2,0,1,1]") ROUTE("1", "0", "0", "[4,0,-1,1]")
                        ROUTE("1", "0", "1", "[4,0,-1,1]") ROUTE("1", "2", "0", "[0,0,1,1]")
                            ROUTE("1", "2", "1", "[7,0,1,1]")
                                ROUTE("2", "0", "0", "[0,0,-1,1],[5,0,-1,1]")
                                    ROUTE("2", "0", "1", "[0,0,-1,1],[5,0,-1,1]")
                                        ROUTE("2", "1", "0", "[1,0,-1,1]")
                                            ROUTE("2", "1", "1", "[1,0,-1,1]"));
}

#define GATHERED                                                                                   \
    HEADER("te-ccl", "allgather", "stepped", "1")                                                  \
    ROUTE("0", "1", "0", "[0,0,1,1]")                                                              \
    ROUTE("0", "2", "0", "[0,0,1,1],[3,0,1,1]")                                                    \
    ROUTE("1", "0", "0", "[1,0,-1,1]")                                                             \
    ROUTE("1", "2", "0", "[0,0,1,1]")                                                              \
    ROUTE("2", "0", "0", "[0,0,-1,1],[2,0,-1,1]") ROUTE("2", "1", "0", "[0,0,-1,1]")
#define CHUNK(from, hop) "\"Chunk 0 from " from " traveled over " hop "\""
#define FLOWS                                                                                      \
    CHUNK("0", "0->1 in epoch 0")                                                                  \
    ", " CHUNK("0", "1->2 in epoch 3 via switches 7 -> 8") ", " CHUNK(                             \
        "1", "1->2 in epoch 0") ", " CHUNK("1", "1->0 in epoch 1") ", " CHUNK("2",                 \
                                                                              "2->1 in epoch 0")
#define FLOWS_KEY(key, last) "{\"" key "\": [" FLOWS ", " last "]}"

TEST(flows_without_volumes_become_an_allgather)
{
    becomes(teccl_read, FLOWS_KEY("6-Flows", CHUNK("2", "1->0 in epoch 2")), "3m", GATHERED);
    becomes(teccl_read, FLOWS_KEY("7-Flows", CHUNK("2", "1->0 in epoch 2")), "3m", GATHERED);
    becomes(teccl_read,
            "{\"8-Chunk paths\": {" DEMAND("1", "0", "0", "[\"0->1 in epoch 0\"]")
                DEMAND("2", "0", "0", "[\"0->1 in epoch 0\", \"1->2 in epoch 3\"]") DEMAND(
                    "0", "0", "1", "[\"1->0 in epoch 1\"]")
                    DEMAND("2", "0", "1", "[\"1->2 in epoch 0\"]") DEMAND(
                        "0", "0", "2",
                        "[\"2->1 in epoch 0\", \"1->0 in epoch 2\"]") "\"Demand at 1 for chunk 0 "
                                                                      "from 2 met by epoch 0\": "
                                                                      "[\"2->1 in epoch 0\"]}}",
            "3m", GATHERED);
}

#define PAIR(first, second)                                                                        \
    "{\"7-Flows\": [\"Chunk 1 from 0 traveled over 0->1 with volume " first                        \
    " in epoch 0\", \"Chunk 0 from 1 traveled over 1->0 with volume " second " in epoch 0\"]}"
#define BAD_DEMAND(paths)                                                                          \
    "{\"8-Chunk paths\": {\"Demand at 4 for chunk 2 from 2 met by epoch 9\": " paths "}}"

TEST(flows_that_are_no_schedule_are_refused)
{
    static const struct {
        const char *json, *part, *other;
    } cases[] = {
        {"{\n\"7-Flows\": [", "line 2: not JSON", ""},
        {"{\"7-Flows\": [], \"7-Flows\": []}", "not JSON", "duplicate"},
        {"{\"7-Flows\": []}", "has a send", "8-Chunk paths"},
        {"{\"7-Flows\": 3}", "\"7-Flows\": expected a list", ""},
        {"{\"7-Flows\": [3]}", "\"7-Flows\": flow 1", ""},
        {"{\"7-Flows\": [\"Chunk 0 from 1\"]}", "\"Chunk 0 from 1\": flow 1", "traveled over"},
        {"{\"7-Flows\": [" CHUNK("0", "0->1 in epoch 65536") "]}", "\"0->1 in epoch 65536\"",
         "at most 65536 epochs"},
        {"{\"7-Flows\": [" CHUNK("0", "0->1 with volume -1 in epoch 1") "]}", "is not a send",
         "volume -1"},
        {"{\"7-Flows\": [" CHUNK("0", "0->1 with volume nan in epoch 1") "]}", "is not a send",
         "volume nan"},
        {"{\"7-Flows\": [" CHUNK("0", "0->1 in epoch 1 via switches ") "]}", "is not a send", ""},
        {FLOWS_KEY("7-Flows", CHUNK("2", "1->0 with volume 1 in epoch 2")),
         "some sends have volumes", "Chunk 0 from 2"},
        {FLOWS_KEY("7-Flows", CHUNK("2", "3->0 in epoch 2")), "no flows bring chunk 0 from 2 to 3",
         ""},
        {FLOWS_KEY("7-Flows", CHUNK("2", "2->1 in epoch 2")), "flow of chunk 0 from 2 over 2->1",
         "another flow"},
        {FLOWS_KEY("7-Flows", CHUNK("2", "0->0 in epoch 2")), "no flows bring chunk 0 from 2", ""},
        {FLOWS_KEY("7-Flows", CHUNK("2", "1->0 in epoch 0")), "\"flows\": send 2", "later epoch"},
        {"{\"7-Flows\": [" CHUNK("0", "0->1 in epoch 1") "]}", "chunks begin at 1 GPUs",
         "3m has 3 nodes"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(teccl_read, cases[i].json, "3m", cases[i].part, cases[i].other);
    refused(teccl_read, PAIR("0.5", "1"), "2", "flow of chunk 1 from 0", "the rest of the chunk");
}

TEST(chunk_paths_that_are_no_schedule_are_refused)
{
    static const struct {
        const char *json, *part, *other;
    } cases[] = {
        {BAD_DEMAND("[]"), "\"Demand at 4 for chunk 2 from 2", "must have a list"},
        {BAD_DEMAND("[[]]"), "\"Demand at 4 for chunk 2 from 2", "list of sends"},
        {BAD_DEMAND("[3]"), "\"Demand at 4 for chunk 2 from 2", "list of sends"},
        {BAD_DEMAND("[[[1]]]"), "\"\" is not a send", ""},
        {"{\"8-Chunk paths\": {\"Demand\": []}}", "\"Demand\": expected", ""},
        {"{\"8-Chunk paths\": []}", "expected an object", "8-Chunk paths"},
        {DEMANDS("\"Demand at 4 for chunk 2 from 2 met by epoch 9\": "
                 "[[[0, \"2->4 with volume 0.5 in epoch 0\"]]]"),
         "only 1 of 2 parts", "Demand at 4 for chunk 2 from 2"},
        {DEMANDS("\"Demand at 4 for chunk 2 from 2 met by epoch 9\": "
                 "[[[0, \"2->4 with volume 1 in epoch 0\"]],[[0, \"2->4 with volume 1 in epoch "
                 "1\"]]]"),
         "more than the whole chunk", "Demand at 4 for chunk 2 from 2"},
        {DEMANDS("\"Demand at 4 for chunk 2 from 2 met by epoch 9\": "
                 "[[[0, \"2->1 with volume 1 in epoch 0\"]]]"),
         "does not lead to the destination", ""},
        {DEMANDS("\"Demand at 4 for chunk 1 from 2 met by epoch 9\": "
                 "[[[0, \"2->4 with volume 1 in epoch 0\"]]]"),
         "chunk 1 belongs to GPU number 1 of 3", ""},
        {DEMANDS("\"Demand at 4 for chunk 2 from 2 met by epoch 9\": "
                 "[[[0, \"2->3 with volume 1 in epoch 0\"]]]"),
         "no chunk begins at device 3", ""},
        {DEMANDS("\"Demand at 4 for chunk 2 from 2 met by epoch 9\": "
                 "[[[0, \"2->4 with volume 0.0029 in epoch 0\"]]]"),
         "more than the 256 equal segments", ""},
        {DEMANDS("\"Demand at 4 for chunk 770 from 2 met by epoch 9\": "
                 "[[[0, \"2->4 with volume 1 in epoch 0\"]]]"),
         "more than the 256 equal segments", ""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(teccl_read, cases[i].json, "3m", cases[i].part, cases[i].other);
    refused(teccl_read, DEMANDS(HALVES), "star:3", "node 2 is not a neighbour of node 1",
            "\"Demand at 4");
}
