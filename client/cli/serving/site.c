#include "client/cli/serving/site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "client/cli/serving/scene.h"
#include "client/cli/serving/serve_page.h"
#include "client/cli/web/web_texts.h"

/* ---- Strangers ------------------------------------------------------------------------------- */

static void remove_at(struct strangers *s, unsigned at)
{
    s->count--;
    memmove(&s->list[at], &s->list[at + 1], (s->count - at) * sizeof s->list[0]);
}

/* Libmicrohttpd then closes the connection. */
static void end_oldest(struct strangers *s)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(s->list[0].connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (info != NULL)
        (void)shutdown(info->connect_fd, SHUT_RDWR);
    remove_at(s, 0);
}

void strangers_come(struct strangers *s, struct MHD_Connection *connection, int64_t now_ms)
{
    if (s->count == STRANGERS_MOST)
        end_oldest(s);
    s->list[s->count++] = (struct stranger){connection, now_ms};
}

void strangers_forget(struct strangers *s, const struct MHD_Connection *connection)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->list[i].connection == connection) {
            remove_at(s, i);
            return;
        }
}

int64_t strangers_expire(struct strangers *s, int64_t now_ms)
{
    while (s->count > 0 && s->list[0].since_ms + STRANGER_MS <= now_ms)
        end_oldest(s);
    return s->count > 0 ? s->list[0].since_ms + STRANGER_MS - now_ms : -1;
}

/* ---- Requests -------------------------------------------------------------------------------- */

static const struct part {
    const char *path, *type, *text;
} parts[] = {
    {"/", "text/html; charset=utf-8", serve_html},
    {"/style.css", "text/css; charset=utf-8", web_style_css},
    {"/serve.css", "text/css; charset=utf-8", serve_css},
    {"/texts.js", "text/javascript; charset=utf-8", web_texts_js},
    {"/colours.js", "text/javascript; charset=utf-8", web_colours_js},
    {"/torus.js", "text/javascript; charset=utf-8", web_torus_js},
    {"/chart.js", "text/javascript; charset=utf-8", serve_chart_js},
    {"/details.js", "text/javascript; charset=utf-8", serve_details_js},
    {"/stream.js", "text/javascript; charset=utf-8", serve_stream_js},
    {"/serve.js", "text/javascript; charset=utf-8", serve_js},
};

#define TEXT "text/plain; charset=utf-8"

/* Nothing but the parts of this page may run or be shown in it, and no other page may show it. */
static void add_headers(struct MHD_Response *r, const char *type)
{
    static const char *const headers[][2] = {
        {"Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; "
                                    "connect-src 'self'; img-src data:; "
                                    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
    };

    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        (void)MHD_add_response_header(r, headers[i][0], headers[i][1]);
    (void)MHD_add_response_header(r, "Content-Type", type);
}

/* Queues a response, and drops it. MHD_NO closes the connection. */
static enum MHD_Result queue(struct MHD_Connection *c, unsigned status, struct MHD_Response *r,
                             const char *type)
{
    if (r == NULL)
        return MHD_NO;
    add_headers(r, type);
    const enum MHD_Result result = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return result;
}

/* A text that stays in place. */
static struct MHD_Response *fixed(const char *text)
{
    return MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                           MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status, const char *text)
{
    return queue(c, status, fixed(text), TEXT);
}

static enum MHD_Result refuse_method(struct MHD_Connection *c)
{
    struct MHD_Response *r = fixed("This page only shows things: use GET.\n");

    if (r != NULL)
        (void)MHD_add_response_header(r, "Allow", "GET");
    return queue(c, MHD_HTTP_METHOD_NOT_ALLOWED, r, TEXT);
}

/* The token moves from the address bar into a cookie, which no script can read and which no page of somebody else can
 * send. The browser goes on to the page by itself: a redirection would not have the cookie if a link of another page has
 * led here. */
static enum MHD_Result let_in(const struct site *s, struct MHD_Connection *c)
{
    char cookie[TOKEN_SIZE + 96];
    struct MHD_Response *r = fixed("<!DOCTYPE html><html lang=\"en\"><title>Torus</title>"
                                   "<meta http-equiv=\"refresh\" content=\"0;url=/\">"
                                   "<p><a href=\"/\">Go on to the page.</a></p></html>\n");

    (void)snprintf(cookie, sizeof cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict",
                   s->door->cookie, s->door->token);
    if (r != NULL)
        (void)MHD_add_response_header(r, "Set-Cookie", cookie);
    return queue(c, MHD_HTTP_OK, r, "text/html; charset=utf-8");
}

static enum MHD_Result answer_json(struct MHD_Connection *c, json_t *value)
{
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT) : NULL;

    json_decref(value);
    if (text == NULL)
        return refuse(c, MHD_HTTP_NOT_FOUND, "There is no such node or port, or no state yet.\n");
    return queue(c, MHD_HTTP_OK,
                 MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE),
                 "application/json");
}

/* Returns the number in the query, or `none` if there is no valid number. */
static uint32_t number_of(struct MHD_Connection *c, const char *name, uint32_t none)
{
    const char *text = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, name);

    if (text == NULL || text[0] == '\0' || strlen(text) > 7 ||
        text[strspn(text, "0123456789")] != '\0')
        return none;
    return (uint32_t)atoi(text);
}

static enum MHD_Result answer_events(struct site *s, struct MHD_Connection *c)
{
    struct MHD_Response *r = watchers_join(&s->watchers, c);

    if (r == NULL && errno == 0)
        return refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE,
                      "32 pages are open, which is the limit: close one of them.\n");
    return queue(c, MHD_HTTP_OK, r, "text/event-stream");
}

/* For those who have the token, if one is needed. */
static enum MHD_Result answer_path(struct site *s, struct MHD_Connection *c, const char *path)
{
    strangers_forget(&s->strangers, c);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strcmp(parts[i].path, path) == 0)
            return queue(c, MHD_HTTP_OK, fixed(parts[i].text), parts[i].type);
    if (strcmp(path, "/events") == 0)
        return answer_events(s, c);
    if (strcmp(path, "/history") == 0)
        return answer_json(c, scene_history_value(s->scene, number_of(c, "node", TORUS_RANK_NONE),
                                                  number_of(c, "port", TORUS_RANK_NONE)));
    if (strcmp(path, "/doctor") == 0) {
        s->wants_doctor = true;
        return queue(c, MHD_HTTP_ACCEPTED, fixed("The findings come with the events.\n"), TEXT);
    }
    return refuse(c, MHD_HTTP_NOT_FOUND, "There is no such page.\n");
}

enum MHD_Result site_answer(void *context, struct MHD_Connection *c, const char *path,
                            const char *method, const char *version, const char *upload,
                            size_t *upload_size, void **request)
{
    struct site *s = context;

    (void)version;
    (void)upload;
    (void)upload_size;
    (void)request;
    if (!door_allows_host(s->door, MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host")))
        return refuse(c, MHD_HTTP_FORBIDDEN,
                      "Ask for this page by the address that 'torusctl serve' has printed.\n");
    if (strcmp(method, "GET") != 0)
        return refuse_method(c);
    if (s->door->token[0] == '\0')
        return answer_path(s, c, path);
    if (strcmp(path, "/") == 0 &&
        door_is_token(s->door, MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token")))
        return let_in(s, c);
    if (!door_is_token(s->door, MHD_lookup_connection_value(c, MHD_COOKIE_KIND, s->door->cookie)))
        return refuse(c, MHD_HTTP_UNAUTHORIZED,
                      "This page needs the token: open the address that 'torusctl serve' has "
                      "printed.\n");
    return answer_path(s, c, path);
}
