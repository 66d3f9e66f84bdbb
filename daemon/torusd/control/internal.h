/* Declarations that the files of this folder share. */
#pragma once

#include "daemon/lib/net/access.h"
#include "daemon/lib/net/framed.h"
#include "daemon/lib/net/sockets.h"
#include "daemon/lib/net/unix_socket.h"
#include "daemon/torusd/control/setup.h"
#include "daemon/torusd/planning/schedule_store.h"
#include "proto/control.pb-c.h"
#include "proto/control_fields.h"
#include "proto/frame.h"

#define PROGRESS_MS 200

/* Fills the message *to from *from, by a list of fields: CONTROL_LINK(CONTROL_FILL). The message borrows its texts. */
#define CONTROL_FILL(KIND, type, number, ...) CONTROL_FILL_##KIND(__VA_ARGS__)
#define CONTROL_FILL_SAME(field) to->field = from->field;
#define CONTROL_FILL_SAME_TEXT(field) to->field = (char *)(uintptr_t)from->field;
#define CONTROL_FILL_OF(part, field) to->field = from->part.field;
#define CONTROL_FILL_NUMBER(field, value, result) to->field = (value);
#define CONTROL_FILL_FLAG(field, value, result) to->field = (value);
#define CONTROL_FILL_TEXT(field, value, result) to->field = (char *)(uintptr_t)(value);
#define CONTROL_FILL_NAMED(field, value, result, read) to->field = (char *)(uintptr_t)(value);
#define CONTROL_FILL_CODE(field, value, result, read) to->field = (uint32_t)(value);

struct control_client;

/* The functions that a connection calls in the files above it. */
struct control_hooks {
    void (*request)(struct control_client *client, const Control__Request *request);
    void (*leaves)(struct control_client *client); /* the client sends no more, but an answer is
                                                    * due */
    void (*gone)(
        struct control_client *client); /* the client has disconnected, and gets no more answers */
    void (*closed)(struct control_client *client); /* the handles are closed: the client can be
                                                    * freed */
};

struct control_client {
    const struct control_hooks *hooks;
    struct framed framed;
    uv_timer_t progress;
    unsigned handles; /* open */
    struct control_server *server;
    struct control_client *next;
    struct job *exchange;               /* the exchange under way for this client, or NULL */
    char exchange_id[EXCHANGE_ID_SIZE]; /* the last id that the client was told */
    struct schedule *schedule; /* the last schedule that the client has given, or is giving */
    struct survey_request survey;
    struct copy *copy;                      /* the copy under way for this client, or NULL */
    bool surveys;                           /* the client waits for `survey` */
    Control__CandidatesRequest *candidates; /* the request to answer when schedules have been
                                             * counted */
    struct link_watch *watch;               /* the client is told of all link states; or NULL */
    enum access access;
    uint32_t user;
    bool counted;         /* the client counts in the share of its user */
    bool state_only;      /* the client may only ask for the state */
    struct error no_slot; /* why the client has no other slot */
    bool leaving;         /* the client sends no more, and is closed after the answer */
};

struct control_server {
    struct control_setup set;
    struct listener listener;
    struct local_name name;
    struct reserve reserve; /* a descriptor to accept and refuse a client with */
    struct control_client *clients;
    unsigned denied; /* refused clients that are being told why */
    bool listener_closed, closing;
    uint64_t started;
};

/* connection.c */
/* Starts to take requests of a new client, whose hooks and server are set, from this descriptor. Returns 0, or -1: the client is closed. */
int control_client_open(struct control_client *client, int fd);
/* Refuses the client, for want of a slot, unless it has asked for the state soon. */
void control_client_hurry(struct control_client *client);
/* Tells the client that there is no slot for its request, and answers nothing more. */
void control_client_no_slot(struct control_client *client);
/* Sends the client an error, and closes it; if `slowly`, only after it has had time to read the error. */
void control_client_refuse(struct control_client *client, const struct error *e, bool slowly);
/* Closes the client at once. Its memory is freed when its handles are closed. */
void control_client_close(struct control_client *client);
/* Packs and sends a reply; does nothing if the client has disconnected. */
void control_reply(struct control_client *client, const Control__Reply *reply);
/* Sends an error as the reply; `id` is the exchange's id, or NULL. */
void control_reply_error(struct control_client *client, const struct error *e, const char *id);
/* The same when the daemon stops, and nothing was decided: the client may ask again. */
void control_reply_stopped(struct control_client *client, const struct error *e, const char *id);
/* Returns a list of pointers to `count` messages of this size, zeroed and all in the same memory: the caller gives the list
 * to free(). On failure returns NULL: memory is short. */
void *control_list(size_t count, size_t size);
/* Whether the client may do this. If not, the client is told which group may. */
bool control_may(struct control_client *client, enum access needed);

/* result.c */
void control_reply_result(struct control_client *client, const struct exchange_result *result);
/* Fills *to, and returns it; or returns NULL if all links were taken for equal. */
Control__LinkRates *control_link_rates(Control__LinkRates *to, const struct link_rates *from);

/* requests.c: one function per kind of request, in a table. */
void control_request(struct control_client *client, const Control__Request *request);
/* Drops the client's use of its schedule, if it has one. */
void control_schedule_leave(struct control_client *client);

/* predictions.c */
struct calibration_message { /* its message points into it */
    Control__Calibration message;
    Control__Costs costs;
};
/* Fills *out with this node's calibration. */
void control_calibration_fill(const struct exchanges *exchanges, struct calibration_message *out);
void control_calibration(struct control_client *client, const Control__Request *request);
void control_candidates(struct control_client *client, const Control__Request *request);
/* Answers the request for candidates now, if it has waited for schedules to be counted. */
void control_candidates_counted(struct control_client *client);
/* Drops the request for candidates that waits; the client gets no answer. */
void control_candidates_forget(struct control_client *client);

/* status.c */
struct graphs_message { /* edges of the graphs that come from a file, which a client cannot know */
    Control__Status__Graph one[TORUS_MAX_DIMS], *list[TORUS_MAX_DIMS];
};
/* Fills status->graph, which points into *m. Returns 0, or -1 without memory. In both cases the caller calls
 * control_graphs_free() with status->n_graph. */
int control_graphs_fill(Control__Status *status, const struct torus *t, struct graphs_message *m);
void control_graphs_free(struct graphs_message *m, size_t count);
void control_status(struct control_client *client, const Control__Request *request);
/* Calls use() with the status of this node, as surveys tell it: without graphs, and without what other nodes tell of
 * themselves. */
void control_with_own_status(const struct control_server *server,
                             void (*use)(void *context, Control__Status *status), void *context);

/* links.c */
void control_links(struct control_client *client, const Control__Request *request);
/* Calls use() with the links of this node. */
void control_with_links(const struct control_server *server,
                        void (*use)(void *context, Control__Links *links), void *context);

/* survey_request.c */
void control_survey(struct control_client *client, const Control__Request *request);
/* The client no longer waits for a survey. */
void control_survey_forget(struct control_client *client);

/* watch_links.c */
void control_watch_links(struct control_client *client, const Control__Request *request);
/* Tells a client that watches the links what has changed. `looks`: also of interfaces, which takes a while. */
void control_watch_update(struct control_client *client, bool looks);
/* The client watches no more. */
void control_watch_forget(struct control_client *client);
/* Withdraws what the client has confirmed. */
void control_watch_gone(struct control_client *client);
void control_routes_confirmed(struct control_client *client, const Control__Request *request);

/* exchange_request.c */
void control_exchange(struct control_client *client, const Control__Request *request);
/* To be called when the daemon stops: if the exchange has not been decided, tells the client that it may
 * start the exchange again. */
void control_exchange_stopped(struct control_client *client);
/* To be called when the client has disconnected: abandons its exchange (exchange_abandon()). */
void control_exchange_abandon(struct control_client *client);

/* copy_request.c */
void control_copy(struct control_client *client, const Control__Request *request);
/* The client asks to stop its copy: it gets an answer now, or the result if it is too late to stop. */
void control_copy_stop(struct control_client *client);
/* To be called when the client has disconnected: ends its copy, if it has one. */
void control_copy_abandon(struct control_client *client);
/* To be called when the daemon stops: tells the client that it may start the copy again. */
void control_copy_stopped(struct control_client *client);
