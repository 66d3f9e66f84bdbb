/* Chooses the frames that leave on a connection, in the order of their urgency. */
#pragma once

struct link;
struct outgoing;

/* Returns the next frame to write; the caller frees it after the write. NULL: there is none now. */
struct outgoing *link_next(struct link *link);
