/* Shared by the files of this folder only. */
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

/* What a connection calls above it. */
struct control_hooks {
    void (*request)(struct control_client *client, const Control__Request *request);
    void (*leaves)(struct control_client *client); /* it sends no more, but an answer is due */
    void (*gone)(struct control_client *client);   /* nobody is to be answered any more */
    void (*closed)(struct control_client *client); /* its handles are: it can be freed */
};

struct control_client {
    const struct control_hooks *hooks;
    uv_pipe_t pipe;
    uv_timer_t progress;
    unsigned handles; /* open */
    struct control_server *server;
    struct control_client *next;
    struct frame_stream in;
    struct job *exchange;                   /* under way for this client, */
    char exchange_id[EXCHANGE_ID_SIZE];     /* by the name it has been told last */
    struct schedule *schedule;              /* that it has given last, or is giving */
    Control__CandidatesRequest *candidates; /* to be answered when schedules have been counted */
    enum access access;
    uint32_t user;
    bool counted;          /* it has a place of that user, */
    bool state_only;       /* of those that may ask for the state for a moment, */
    struct error no_place; /* as it has no other, for this reason */
    bool leaving;          /* it sends no more, and is closed after the answer */
    bool refused;          /* told why, and not answered */
    bool held;             /* it does not read its replies: nothing is read from it for now */
};

struct control_server {
    struct control_setup set;
    struct listener listener;
    struct local_name name;
    struct reserve reserve; /* a descriptor to turn a client away with */
    struct control_client *clients;
    unsigned denied; /* clients who may do nothing, and are told so */
    bool listener_closed, closing;
    uint64_t started;
};

/* connection.c */
/* Takes requests from now on. */
void control_client_begin(struct control_client *client);
/* It asks for something that it has no place for: tells it so, and answers nothing more. */
void control_client_no_place(struct control_client *client);
/* Tells it why it is not served, and closes it; with `slowly` after it had time to read that. */
void control_client_refuse(struct control_client *client, const struct error *e, bool slowly);
void control_client_close(struct control_client *client);
/* Pack and send; nothing happens if the client has gone. */
void control_reply(struct control_client *client, const Control__Reply *reply);
void control_reply_error(struct control_client *client, const struct error *e, const char *id);

/* permission.c */
/* Whether the client may do this; if not, it is told which group may. */
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
/* Answers it now, if it has waited for schedules to be counted. */
void control_candidates_again(struct control_client *client);
void control_candidates_forget(struct control_client *client);

/* status.c */
void control_status(struct control_client *client, const Control__Request *request);

/* exchange_request.c */
void control_exchange(struct control_client *client, const Control__Request *request);
/* The daemon stops: tells the client, if its exchange was not decided, that it may ask for it again. */
void control_exchange_stopped(struct control_client *client);
void control_exchange_abandon(struct control_client *client);

/* schedule_request.c */
void control_schedule(struct control_client *client, const Control__Request *request);
void control_schedule_leave(struct control_client *client);

#endif
