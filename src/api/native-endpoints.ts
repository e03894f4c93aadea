/**
 * Endpoints of home's own EndpointSlices that are pods of the cluster which gets the copy. A peer may not write addresses of
 * that cluster. It says which of them it means, in an annotation of its copy, and the cluster itself makes endpoints of
 * those that are pods of the peer there. Pure.
 */
import { isIP } from 'node:net';

import { boolean, list, matching, opaque, orNull, parseUntrusted, record, refuse } from '../lib/untrusted.ts';
import type { Endpoint } from './wire.ts';

/** As many as a slice may have endpoints. */
export const MAX_NATIVE_ENDPOINTS = 1000;
const MAX_ADDRESS = 45;
const HOSTNAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/u;
const MAX_HOSTNAME = 63;

export interface NativeEndpoint extends Pick<Endpoint, 'hostname' | 'conditions'> {
  /** Of a pod, as the cluster itself writes it that it runs in. */
  address: string;
}

const address = (value: unknown, path: string): string => {
  const found = opaque(MAX_ADDRESS)(value, path);
  return isIP(found) === 0 || found.includes('%') ? refuse(path, 'is no address') : found;
};
const condition = orNull(boolean);
const check = list(
  record(
    { address },
    {
      hostname: orNull(matching(HOSTNAME, MAX_HOSTNAME)),
      conditions: orNull(record({}, { ready: condition, serving: condition, terminating: condition })),
    },
  ),
  MAX_NATIVE_ENDPOINTS,
);

/** The value of the annotation. */
export const formatNativeEndpoints = (endpoints: readonly NativeEndpoint[]): string =>
  JSON.stringify(endpoints);

/** What a peer has written there. Throws Invalid where it is not of that form. */
export const parseNativeEndpoints = (text: string): NativeEndpoint[] =>
  check(parseUntrusted(text, 'the list of endpoints'), 'endpoints');
