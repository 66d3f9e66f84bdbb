/* How many processors a daemon has for itself, from which follows how many I/O threads it starts by default. */
#pragma once

/* Returns how many processors this process may use at a time: those that it may run on (sched_setaffinity(2)), or fewer if
 * its control group or one above it has a quota, of cgroup v1 or v2. The files are read below `root` ("": /). */
double processors_usable(const char *root);

/* Returns how many processes, at least 1, have the name of this one: the daemons of this machine, as far as this one may
 * see them. `proc` is a folder like /proc. */
unsigned processors_sharing(const char *proc);

/* Returns the number of I/O threads of a daemon with that many ports: none if it has fewer than four processors; else half
 * as many as processors, because programs and the loop's thread need some, and at most one for each direction of a port,
 * and four. */
unsigned processors_io_threads(double processors, unsigned sharing, unsigned ports);
