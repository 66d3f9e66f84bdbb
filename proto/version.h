/* The versions that programs of this project print. */
#pragma once

#include "proto/frame.h"
#include "proto/program.h"

/* The text behind a program's name and release for --version: the protocols, which decide which
 * releases work together. */
#define VERSION_PROTOCOLS_FORMAT "protocols: peer %u.%u, control %u, program %u"
#define VERSION_PROTOCOLS PROTOCOL_VERSION, PROTOCOL_MINOR, CONTROL_VERSION, PROGRAM_VERSION
