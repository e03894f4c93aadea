import type { Tunnel } from '../api/tunnel.ts';
import { deepEqual } from '../lib/equality.ts';

/**
 * Whether two states of a Tunnel differ only in what was measured and no host depends on: round-trip time, loss, bytes, the last
 * handshake. The gateway writes these now and then while all is well, and every node hears of it.
 */
export const differInNumbersOnly = (one: Tunnel | undefined, other: Tunnel | undefined): boolean =>
  one !== undefined && other !== undefined && deepEqual(withoutNumbers(one), withoutNumbers(other));

function withoutNumbers({ metadata, status, ...rest }: Tunnel): unknown {
  const { resourceVersion: _version, ...named } = metadata;
  const { rttMs: _rtt, lossPercent: _loss, ...connection } = status?.connection ?? {};
  const { receivedBytes: _received, sentBytes: _sent, handshake: _handshake, ...facts } = connection;
  return { ...rest, metadata: named, status: { ...status, connection: facts } };
}
