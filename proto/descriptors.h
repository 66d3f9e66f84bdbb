/* Descriptors that a program is started with. */
#ifndef TORUSD_PROTO_DESCRIPTORS_H
#define TORUSD_PROTO_DESCRIPTORS_H

/* If standard input, output or error are closed, keeps sockets and files from getting their numbers: what is
 * printed or logged would go there. What takes their place cannot be written to, so that lost output is
 * noticed. Before anything is opened. */
void descriptors_fill_standard(void);

#endif
