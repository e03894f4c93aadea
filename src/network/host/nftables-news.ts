import { TABLES } from './host-config.ts';

const NAMES = Object.values(TABLES).map((name) => Buffer.from(name));

/**
 * Whether a notification of nftables is about one of our tables: each message names its table. kube-proxy and CNIs change
 * theirs all the time, and to look at ours after each of those changes costs more than all the rest. Rather once too
 * often: the name may stand anywhere, and one datagram holds many messages.
 */
export const isAboutUs = (datagram: Buffer): boolean => NAMES.some((name) => datagram.includes(name));
