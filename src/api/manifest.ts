import { TributaryError } from '../lib/errors.ts';
import type { DraftMeta, KubeObject } from './wire.ts';

/** An object as somebody applies it: what `kubectl apply -f` reads. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: DraftMeta;
}

/** A manifest of one kind: everything but what the API server writes. */
export type ManifestOf<T extends KubeObject> = Omit<T, 'metadata' | 'status' | 'apiVersion' | 'kind'> &
  Manifest;

/** On every object that we print for a person to apply; also the selector of our own pods. */
export const LABEL_APP_NAME = 'app.kubernetes.io/name';
export const LABEL_APP_INSTANCE = 'app.kubernetes.io/instance';
export const APP_NAME = 'tributary';

/** Longest DNS label (RFC 1123), and so the longest label value. */
export const MAX_LABEL_LENGTH = 63;

/** Objects of an agent are named `tributary-peer-<VirtualNode>`, and that name must fit into a label. */
export const AGENT_NAME_PREFIX = 'tributary-peer-';
/** Of the one agent that serves all providers, where people have chosen that: its Deployment and its account. */
export const PEERS_NAME = 'tributary-peers';
export const MAX_VIRTUAL_NODE_NAME: number = MAX_LABEL_LENGTH - AGENT_NAME_PREFIX.length;

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Returns the name, or throws Invalid with one line that says what is wrong with it. */
export function checkedLabel(what: string, name: string, maxLength: number = MAX_LABEL_LENGTH): string {
  return checked(what, name, { pattern: DNS_LABEL, maxLength, extra: '' });
}

/** As checkedLabel, but with dots, as names of Nodes may have. */
export function checkedSubdomain(what: string, name: string, maxLength: number = MAX_LABEL_LENGTH): string {
  return checked(what, name, { pattern: DNS_SUBDOMAIN, maxLength, extra: ' or dots' });
}

function checked(
  what: string,
  name: string,
  rule: { pattern: RegExp; maxLength: number; extra: string },
): string {
  if (name === '') throw new TributaryError('Invalid', `${what} is empty`);
  if (name.length > rule.maxLength) {
    throw new TributaryError(
      'Invalid',
      `${what} "${name}" has ${name.length} characters, at most ${rule.maxLength} are allowed`,
    );
  }
  if (!rule.pattern.test(name)) {
    throw new TributaryError(
      'Invalid',
      `${what} "${name}" is not a DNS name: lower-case letters, digits and dashes${rule.extra}, no dash at an end`,
    );
  }
  return name;
}

/** Throws Invalid where a name is given twice: the second would silently win. */
export function checkedUnique(what: string, names: readonly string[]): readonly string[] {
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new TributaryError('Invalid', `${what} "${twice}" is given twice`);
  return names;
}

/** Where started agents run, and their accounts are; nothing else may be here. */
export const AGENTS_NAMESPACE = 'tributary-agents';

/** Where our own pods run. */
export const SYSTEM_NAMESPACE = 'tributary-system';
/** Of role `cluster`: its Deployment, its account and its rights. */
export const CLUSTER_NAME = 'tributary-cluster';

/** By which one process of role `cluster` leads; in that namespace. */
export const CLUSTER_LEASE = 'tributary-cluster';
