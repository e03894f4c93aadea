/**
 * A separate program that writes to standard output what the kernel tells of changes, until its standard input ends:
 * `ready` once, then `changed`, at most one line in 50 ms. It writes `error ...` before it ends by itself. A line of input
 * has the indexes of our links, such as `3 7`: neighbours of all others change all the time, and nobody is woken for that.
 *
 * It is a separate program because npm `netlink` (0.3.0) aborts the whole process when more changes come than its socket holds: libuv
 * reports that as an error of the poll, for which the binding makes an exception from a null pointer.
 */
import { createInterface } from 'node:readline';

// The rest of the package would take most of this program's memory.
import raw from 'netlink/dist/raw.js';

import { systemClock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { isAboutUs } from './host-config.ts';

/** NETLINK_ROUTE and NETLINK_NETFILTER. */
const ROUTE = 0;
const NETFILTER = 12;
/**
 * RTNLGRP_* of linux/rtnetlink.h: links, neighbours; then addresses, routes, rules and some sysctls (netconf) of IPv4,
 * and of IPv6.
 */
const ROUTE_GROUPS = [1, 3, 5, 7, 8, 24, 9, 11, 19, 25];
/** NFNLGRP_NFTABLES. */
const NFTABLES_GROUP = 7;
const RECEIVE_BYTES = 1024 * 1024;
const QUIET_MS = 50;
/** RTM_NEWNEIGH and RTM_DELNEIGH. */
const NEIGHBOUR_TYPES = new Set([28, 29]);
/** Offsets of the type of a message, and of the link's index in one about a neighbour. */
const TYPE_AT = 4;
const NEIGHBOUR_INDEX_AT = 20;

type Socket = InstanceType<typeof raw.RawNetlinkSocket>;

let ourLinks: ReadonlySet<number> = new Set();
let isWaiting = false;

function tell(): void {
  isWaiting = false;
  process.stdout.write('changed\n');
}

function changed(): void {
  if (isWaiting) return;
  isWaiting = true;
  systemClock.after(QUIET_MS, tell);
}

function listen(protocol: number, groups: readonly number[], heard: (message: Buffer) => void): Socket {
  const socket = new raw.RawNetlinkSocket(protocol, { recvBufferSize: RECEIVE_BYTES, sendBufferSize: 0 });
  socket.on('message', heard);
  // A look at the host finds what was lost.
  socket.on('error', () => changed());
  for (const group of groups) socket.addMembership(group);
  return socket;
}

/** The kernel sends each notification in a datagram of its own. */
function heardOfRoutes(message: Buffer): void {
  const isNeighbour = message.length >= NEIGHBOUR_INDEX_AT + 4 && NEIGHBOUR_TYPES.has(u16(message, TYPE_AT));
  if (!isNeighbour || ourLinks.has(u32(message, NEIGHBOUR_INDEX_AT))) changed();
}

/** In the machine's byte order. */
const u16 = (message: Buffer, at: number): number => new Uint16Array(copy(message, at, 2))[0] ?? 0;
const u32 = (message: Buffer, at: number): number => new Uint32Array(copy(message, at, 4))[0] ?? 0;
const copy = (message: Buffer, at: number, length: number): ArrayBuffer =>
  new Uint8Array(message.subarray(at, at + length)).buffer;

try {
  const sockets = [
    listen(ROUTE, ROUTE_GROUPS, heardOfRoutes),
    listen(NETFILTER, [NFTABLES_GROUP], (message) => {
      if (isAboutUs(message)) changed();
    }),
  ];
  const end = (): void => sockets.splice(0).forEach((socket) => socket.close());
  createInterface({ input: process.stdin }).on('line', (line) => {
    ourLinks = new Set(line.split(' ').map(Number));
  });
  process.stdin.on('close', end);
  process.stdout.on('error', end);
  process.stdout.write('ready\n');
} catch (error) {
  process.stdout.write(`error ${errorMessage(error)}\n`);
}
