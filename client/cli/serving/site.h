/* The parts of the page, and who gets them: requests of browsers, and what they are answered. */
#pragma once

#include "client/cli/serving/door.h"
#include "client/cli/serving/scene.h"
#include "client/cli/serving/strangers.h"
#include "client/cli/serving/watchers.h"

struct site {
    const struct door *door;
    const struct scene *scene;
    struct watchers watchers;
    struct strangers strangers;
    bool wants_doctor; /* somebody has asked for new findings */
};

/* Answers a request: an MHD_AccessHandlerCallback whose context is a struct site. */
enum MHD_Result site_answer(void *site, struct MHD_Connection *connection, const char *path,
                            const char *method, const char *version, const char *upload,
                            size_t *upload_size, void **request);
