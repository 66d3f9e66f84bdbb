/* Where torusd-setup listens. */
#pragma once

#define SETUP_SOCKET "/run/torusd-setup/setup.sock"
