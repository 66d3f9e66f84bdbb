/* The descriptors with which a program starts. */
#pragma once

/* Opens something in place of standard input, output or error if they are closed: otherwise
 * sockets and files would get their numbers, and receive what is printed or logged. The
 * replacement cannot be written to, so that lost output is noticed. To be called before anything
 * is opened. */
void descriptors_fill_standard(void);
