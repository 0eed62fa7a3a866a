/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the tests of several devices stand on: three rigs (rig.h) on devices of their own, between which the ways are
 * open.
 */
#pragma once

#include "rig.h"

#define N_PEERS 3

typedef struct {
  Rig rig[N_PEERS];
} Peers;

/** Fixture functions for g_test_add(). */
void peers_setup (Peers *peers, const void *data);
void peers_teardown (Peers *peers, const void *data);

#define PEER_TEST(path, func) g_test_add (path, Peers, NULL, peers_setup, func, peers_teardown)

/** Tears one of them down while the others go on. */
void peers_close_device (Rig *rig);
