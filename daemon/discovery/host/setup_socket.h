/* Where torusd-setup listens. */
#ifndef TORUSD_DISCOVERY_HOST_SETUP_SOCKET_H
#define TORUSD_DISCOVERY_HOST_SETUP_SOCKET_H

#define SETUP_SOCKET "/run/torusd-setup/setup.sock"

#endif
