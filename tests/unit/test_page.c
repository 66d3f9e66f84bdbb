/* Pages for a browser: their parts are in place, and no text of the data can end a script. */
#include "client/cli/web/page.h"
#include "tests/support/cmocka.h"

#define DATA_BEGIN "<script>const DATA = "
#define DATA_END ";</script>\n"

static char *write_page(const struct page *p)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    page_write(out, p);
    assert_int_equal(fclose(out), 0);
    return text;
}

TEST(parts_are_in_place)
{
    static const char *const scripts[] = {"first();\n", "second();\n", NULL};
    char *text =
        write_page(&(struct page){.body = "<html>\n<!--style-->\n<p>text</p>\n<!--data-->\n"
                                          "<!--scripts-->\n</html>",
                                  .style = "a {}\n",
                                  .more_style = "b {}\n",
                                  .scripts = scripts,
                                  .data = NULL});

    assert_string_equal(
        text, "<html>\n<style>\na {}\nb {}\n</style>\n<p>text</p>\n<script>\nfirst();\n</script>\n"
              "<script>\nsecond();\n</script>\n</html>\n");
    free(text);
}

/* Whatever is in it, the data is one script, and its value is the same. */
static void check_data(const char *text)
{
    static const char *const none[] = {NULL};
    json_t *data = json_pack("{s:s, s:[s]}", "key", text, "list", text);

    assert_non_null(data);
    (void)json_object_set_new(data, text, json_integer(1)); /* as a key, too */
    char *page = write_page(
        &(struct page){.body = "<!--data-->", .style = "", .scripts = none, .data = data});
    assert_int_equal(strncmp(page, DATA_BEGIN, strlen(DATA_BEGIN)), 0);
    char *begin = page + strlen(DATA_BEGIN), *end = strstr(begin, DATA_END);
    assert_non_null(end);
    assert_int_equal(end[strlen(DATA_END)], '\0');
    for (const char *c = begin; c < end;
         c++) /* neither a tag, a comment, nor a line separator of JavaScript */
        assert_true(*c != '<' && (unsigned char)*c < 0x7f && (unsigned char)*c >= ' ');
    *end = '\0';
    json_t *read = json_loads(begin, 0, NULL);
    assert_true(json_equal(read, data));
    json_decref(read);
    json_decref(data);
    free(page);
}

TEST(no_text_ends_the_script)
{
    static const char *const texts[] = {"</script>",
                                        "</ScRiPt >",
                                        "<!--<script>",
                                        "<!--data-->",
                                        "\n<!--scripts-->\n",
                                        "<\\/script>",
                                        "\\u003c/script>",
                                        "\"; alert(1); \"",
                                        "\\\"; alert(1)",
                                        "]]>",
                                        "\xe2\x80\xa8\xe2\x80\xa9",
                                        "</script\t><img src=x onerror=alert(1)>",
                                        "${alert(1)}`"};
    uint64_t chance = 5;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_data(texts[i]);
    for (unsigned i = 0; i < 2000; i++) {
        static const char letters[] = "<>/!-\\\"'scriptSCRIPT \n\t\x01&;u03c";
        char text[24];
        size_t length = 0;
        while (length < sizeof text - 1) {
            chance = chance * 6364136223846793005u + 1442695040888963407u;
            text[length++] = letters[(chance >> 33) % (sizeof letters - 1)];
        }
        text[length] = '\0';
        check_data(text);
    }
}

/* Each channel leads to the node where the torus says it does, and all nodes lie within the drawing. */
TEST(a_torus_is_described)
{
    static const char *const tori[] = {"1",     "2",       "4x4",        "3mx5",
                                       "3x4x5", "2x2x2x2", "complete:5", "complete:5x3"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t;
        struct error e;
        size_t channels = 0, k;
        json_t *value;
        assert_int_equal(torus_parse(&t, tori[i], NULL), 0);
        json_t *o = torus_json(&t, &e);
        assert_non_null(o);
        double width = json_number_value(json_object_get(o, "width"));
        double height = json_number_value(json_object_get(o, "height"));
        assert_int_equal(json_array_size(json_object_get(o, "place")), t.nodes);
        json_array_foreach(json_object_get(o, "place"), k, value)
        {
            double x = json_number_value(json_array_get(value, 0)),
                   y = json_number_value(json_array_get(value, 1));
            assert_true(x > 0 && x < width && y > 0 && y < height);
        }
        for (uint32_t node = 0; node < t.nodes; node++)
            for (unsigned port = 0; port < torus_ports(&t); port++)
                channels += torus_neighbour(&t, node, port) != TORUS_NO_NODE;
        assert_int_equal(json_array_size(json_object_get(o, "channels")), channels);
        json_array_foreach(json_object_get(o, "channels"), k, value) assert_int_equal(
            json_integer_value(json_array_get(value, 2)),
            torus_neighbour(&t, (uint32_t)json_integer_value(json_array_get(value, 0)),
                            (unsigned)json_integer_value(json_array_get(value, 1))));
        json_decref(o);
    }
}

TEST(large_tori_are_refused)
{
    struct torus t;
    struct error e;

    assert_int_equal(torus_parse(&t, "32x33", NULL), 0);
    assert_null(torus_json(&t, &e));
    assert_int_equal(e.code, ERROR_REFUSED);
}
