import { LABEL_PEER } from './names.ts';
import type { KubeObject } from './wire.ts';

export { LABEL_PEER };

/** The peer that something belongs to, by its label; empty without one. */
export const peerOf = ({ metadata }: KubeObject): string => metadata.labels?.[LABEL_PEER] ?? '';

/**
 * On what lending made because of a contract, with the value `contract`. Only such objects are changed or deleted by
 * it: a tenant that people made with `tributary tenant` bears LABEL_PEER too, and is theirs.
 */
export const LABEL_TENANCY = 'tributary.dev/tenancy';
export const TENANCY_CONTRACT = 'contract';

/**
 * Peers' accounts live here and not in a tenant namespace: there a peer may create pods and Secrets, and so could
 * mount its own account or have a token made for it that never expires.
 */
export const PEERS_NAMESPACE = 'tributary-peers';
