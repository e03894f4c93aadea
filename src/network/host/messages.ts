/** Message types and fixed headers of rtnetlink(7). */
import { u16, u32 } from './attributes.ts';

export const NEW_LINK = 16;
export const DELETE_LINK = 17;
export const GET_LINK = 18;
export const NEW_ADDRESS = 20;
export const DELETE_ADDRESS = 21;
export const GET_ADDRESS = 22;
export const NEW_ROUTE = 24;
export const DELETE_ROUTE = 25;
export const GET_ROUTE = 26;
export const NEW_NEIGHBOUR = 28;
export const DELETE_NEIGHBOUR = 29;
export const GET_NEIGHBOUR = 30;
export const NEW_RULE = 32;
export const DELETE_RULE = 33;
export const GET_RULE = 34;

export const AF_BRIDGE = 7;

/** Sizes of the headers below. */
export const LINK_BYTES = 16;
export const ADDRESS_BYTES = 8;
export const NEIGHBOUR_BYTES = 12;
export const ROUTE_BYTES = 12;
export const RULE_BYTES = 12;

/** `struct ifinfomsg`: `change` says which of the flags count. */
export function linkHeader(fields: {
  family?: number;
  index?: number;
  flags?: number;
  change?: number;
}): Buffer {
  const { family = 0, index = 0, flags = 0, change = 0 } = fields;
  return Buffer.concat([Buffer.from([family, 0, 0, 0]), u32(index), u32(flags), u32(change)]);
}

/** `struct ifaddrmsg`. */
export function addressHeader(family: number, length: number, index: number): Buffer {
  return Buffer.concat([Buffer.from([family, length, 0, 0]), u32(index)]);
}

/** `struct ndmsg`. */
export function neighbourHeader(fields: {
  family: number;
  index: number;
  state: number;
  flags?: number;
}): Buffer {
  const head = Buffer.from([fields.family, 0, 0, 0]);
  return Buffer.concat([head, u32(fields.index), u16(fields.state), Buffer.from([fields.flags ?? 0, 0])]);
}

/** `struct rtmsg`. */
export interface RouteHeader {
  family: number;
  destinationLength: number;
  protocol?: number;
  scope?: number;
  type?: number;
  flags?: number;
}

/** The table goes into an attribute, since it may be over 255. */
export function routeHeader(header: RouteHeader): Buffer {
  const { family, destinationLength, protocol = 0, scope = 0, type = 0, flags = 0 } = header;
  return Buffer.concat([
    Buffer.from([family, destinationLength, 0, 0, 0, protocol, scope, type]),
    u32(flags),
  ]);
}

/** `struct fib_rule_hdr`; the table goes into an attribute. */
export function ruleHeader(fields: {
  family: number;
  toLength: number;
  fromLength: number;
  action: number;
}): Buffer {
  const { family, toLength, fromLength, action } = fields;
  return Buffer.concat([Buffer.from([family, toLength, fromLength, 0, 0, 0, 0, action]), u32(0)]);
}
