/* What goes out on a connection, in the order of its urgency. */
#ifndef TORUSD_ROUTER_LINKS_FRAMES_OUT_H
#define TORUSD_ROUTER_LINKS_FRAMES_OUT_H

struct link;
struct outgoing;

/* The next frame to write; the caller frees it after the write. NULL: nothing now. */
struct outgoing *link_next(struct link *link);

#endif
