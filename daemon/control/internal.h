/* What the files of this folder share. */
#ifndef TORUSD_CONTROL_INTERNAL_H
#define TORUSD_CONTROL_INTERNAL_H

#include "daemon/control/setup.h"
#include "daemon/net/local/local.h"
#include "daemon/net/sockets/listener.h"
#include "daemon/planning/schedule_store.h"
#include "proto/control.pb-c.h"
#include "proto/frame.h"

#define PROGRESS_MS 200

struct control_client;

/* The functions above a connection that it calls. */
struct control_hooks {
    void (*request)(struct control_client *client, const Control__Request *request);
    void (*leaves)(struct control_client *client); /* the client sends no more, but an answer is
                                                    * due */
    void (*gone)(struct control_client *client);   /* the client has gone: nobody is to be
                                                    * answered any more */
    void (*closed)(struct control_client *client); /* the handles are closed: the client can be
                                                    * freed */
};

struct control_client {
    const struct control_hooks *hooks;
    uv_pipe_t pipe;
    uv_timer_t progress;
    unsigned handles; /* open */
    struct control_server *server;
    struct control_client *next;
    struct frame_stream in;
    struct job *exchange;                   /* the exchange under way for this client, or NULL */
    char exchange_id[EXCHANGE_ID_SIZE];     /* the id that the client has been told last */
    struct schedule *schedule;              /* the schedule that the client has given last, or is
                                             * giving */
    Control__CandidatesRequest *candidates; /* the request to answer when schedules have been
                                             * counted */
    enum access access;
    uint32_t user;
    bool counted;          /* the client has a place of its user */
    bool state_only;       /* that place is for asking for the state only */
    struct error no_place; /* why the client has no other place */
    bool leaving;          /* the client sends no more, and is closed after the answer */
    bool refused;          /* the client is told why, and gets no answers */
    bool held;             /* the client does not read its replies: nothing is read from it for
                            * now */
};

struct control_server {
    struct control_setup set;
    struct listener listener;
    struct local_name name;
    struct reserve reserve; /* a descriptor to turn a client away with */
    struct control_client *clients;
    unsigned denied; /* refused clients that are being told why */
    bool listener_closed, closing;
    uint64_t started;
};

/* connection.c */
/* Starts to take requests of the client. */
void control_client_begin(struct control_client *client);
/* Tells the client that it has no place for what it asks for, and answers nothing more. */
void control_client_no_place(struct control_client *client);
/* Tells the client why it is not served, and closes it; with `slowly` after it has had time to
 * read that. */
void control_client_refuse(struct control_client *client, const struct error *e, bool slowly);
void control_client_close(struct control_client *client);
/* Packs and sends a reply; does nothing if the client has gone. */
void control_reply(struct control_client *client, const Control__Reply *reply);
void control_reply_error(struct control_client *client, const struct error *e, const char *id);

/* permission.c */
/* Whether the client may do this. If not, the client is told which group may. */
bool control_may(struct control_client *client, enum access needed);

/* result.c */
void control_reply_result(struct control_client *client, const struct exchange_result *result);

/* requests.c: one function per kind of request, in a table. */
void control_request(struct control_client *client, const Control__Request *request);

/* predictions.c */
struct calibration_message { /* its message points into it */
    Control__Calibration message;
    Control__Costs costs;
};
void control_calibration_fill(const struct exchanges *exchanges, struct calibration_message *out);
void control_calibration(struct control_client *client, const Control__Request *request);
void control_candidates(struct control_client *client, const Control__Request *request);
/* Answers the request for candidates now, if it has waited for schedules to be counted. */
void control_candidates_again(struct control_client *client);
void control_candidates_forget(struct control_client *client);

/* status.c */
void control_status(struct control_client *client, const Control__Request *request);

/* exchange_request.c */
void control_exchange(struct control_client *client, const Control__Request *request);
/* The daemon stops: if the exchange was not decided, tells the client that it may ask again. */
void control_exchange_stopped(struct control_client *client);
void control_exchange_abandon(struct control_client *client);

/* schedule_request.c */
void control_schedule(struct control_client *client, const Control__Request *request);
void control_schedule_leave(struct control_client *client);

#endif
