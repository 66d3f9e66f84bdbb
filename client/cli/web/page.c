#include "client/cli/web/page.h"

#include <stdlib.h>
#include <string.h>

/* Writes data into a script: "<" becomes an escape, because "</script" would end it. */
static void write_data(FILE *out, const json_t *data)
{
    char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(8) | JSON_ENSURE_ASCII);

    (void)fputs("<script>const DATA = ", out);
    for (const char *c = text != NULL ? text : "null"; *c != '\0'; c++)
        if (*c == '<')
            (void)fputs("\\u003c", out);
        else
            (void)fputc(*c, out);
    (void)fputs(";</script>\n", out);
    free(text);
}

static void write_part(FILE *out, const struct page *p, const char *line, size_t length)
{
    if (length == strlen("<!--style-->") && strncmp(line, "<!--style-->", length) == 0) {
        (void)fprintf(out, "<style>\n%s%s</style>\n", p->style,
                      p->more_style != NULL ? p->more_style : "");
    } else if (length == strlen("<!--data-->") && strncmp(line, "<!--data-->", length) == 0) {
        if (p->data != NULL)
            write_data(out, p->data);
    } else if (length == strlen("<!--scripts-->") && strncmp(line, "<!--scripts-->", length) == 0) {
        for (const char *const *s = p->scripts; *s != NULL; s++)
            (void)fprintf(out, "<script>\n%s</script>\n", *s);
    } else {
        (void)fprintf(out, "%.*s\n", (int)length, line);
    }
}

void page_write(FILE *out, const struct page *p)
{
    for (const char *line = p->body; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        write_part(out, p, line, length);
        line += length + (line[length] == '\n');
    }
}
