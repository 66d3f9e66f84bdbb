/* The connections between the ranks of a node: sockets, by which guests pass parcels to their leader. */
#pragma once

#include <vector>

#include "client/torch/parcel.h"

namespace torus_torch
{

/* Open a group for the first rank of the node, or for another one, which finds the first by the store. Throw. */
std::unique_ptr<Calls> open_leader(const Place &place);
std::unique_ptr<Calls> open_guest(const Place &place);

/* At the leader: returns a socket for each of the other ranks of the node, in their order. Throws unless all of them come in
 * time. */
std::vector<int> accept_guests(const Place &place);

/* Returns the socket of a guest. Throws. */
int connect_leader(const Place &place);

/* Sends a parcel. Returns whether the other end is there. */
bool send_parcel(int fd, uint64_t number, int parcel);

/* Receives a parcel without waiting. Returns 1; 0 if there is none; or -1 if the other end is gone. */
int receive_parcel(int fd, uint64_t *number, int *parcel);

/* How many calls of a kind a rank may have under way: the ranks of a node share those of the group. */
size_t most_on_node(Kind kind, const Ranks &ranks);

} // namespace torus_torch
