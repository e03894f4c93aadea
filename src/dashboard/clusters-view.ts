/** Foreign clusters with everything that is said about them: requests, offers, tunnels, virtual nodes. Pure. */
import type { Advertisement } from '../api/advertisement.ts';
import { disabledIn, DIRECTIONS, type ForeignCluster, type PeeringState } from '../api/foreign-cluster.ts';
import { LABEL_PROVIDER } from '../api/names.ts';
import type { Price } from '../api/offer.ts';
import type { PeeringRequest } from '../api/peering-request.ts';
import type { Tunnel } from '../api/tunnel.ts';
import { formatPrice } from '../api/prices.ts';
import { VIRTUAL_NODE_REASONS, type VirtualNode } from '../api/virtual-node.ts';
import { present } from '../lib/fields.ts';
import type { Facts, PodCounts } from './facts.ts';
import type { ClusterModel, DecisionModel, DirectionModel, TunnelModel, VirtualNodeModel } from './model.ts';
import { line, word } from './texts.ts';

/** An ID is long; its beginning is enough to tell two clusters apart on a page. */
export const shortID = (clusterID: string): string =>
  clusterID.length > 12 ? `${clusterID.slice(0, 8)}…` : clusterID;

export function clustersOf(facts: Facts): ClusterModel[] {
  const byID = new Map<string, ClusterModel>();
  const unnamed: ClusterModel[] = [];
  const byNode = podsByNode(facts.pods);
  for (const cluster of facts.clusters) {
    const model = clusterModel(cluster);
    if (model.clusterID === undefined || byID.has(model.clusterID)) unnamed.push(model);
    else byID.set(model.clusterID, model);
  }
  const at = (clusterID: string, clusterName?: string): ClusterModel => {
    const known = byID.get(clusterID) ?? unknownCluster(clusterID, clusterName);
    byID.set(clusterID, known);
    return known;
  };
  for (const request of facts.requests)
    at(request.spec.clusterID, request.spec.clusterName).request = requestModel(request);
  for (const offer of facts.offers)
    at(offer.spec.clusterID, offer.spec.clusterName).offer = offerModel(offer);
  for (const tunnel of facts.tunnels)
    at(tunnel.spec.clusterID, tunnel.spec.clusterName).tunnel = tunnelModel(tunnel);
  for (const node of facts.virtualNodes) {
    const provider = node.metadata.labels?.[LABEL_PROVIDER];
    const model = at(provider ?? node.metadata.name);
    const pods = byNode.get(node.spec.nodeName ?? node.metadata.name) ?? 0;
    model.nodes.push(nodeModel(node, pods));
    model.pods += pods;
  }
  return [...byID.values(), ...unnamed].toSorted((a, b) => (a.title + a.name < b.title + b.name ? -1 : 1));
}

function podsByNode(pods: PodCounts): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const counts of pods.values())
    for (const [node, count] of counts) sums.set(node, (sums.get(node) ?? 0) + count);
  return sums;
}

const unknownCluster = (clusterID: string, clusterName?: string): ClusterModel => ({
  name: clusterID,
  clusterID,
  title: word(clusterName ?? '') || shortID(clusterID),
  foundBy: '',
  isConnected: false,
  isDisabled: false,
  outgoing: { phase: 'None' },
  incoming: { phase: 'None' },
  nodes: [],
  pods: 0,
});

function clusterModel(cluster: ForeignCluster): ClusterModel {
  const { metadata, spec = {}, status = {} } = cluster;
  const clusterID = spec.clusterID ?? status.clusterID;
  const named = word(status.clusterName ?? '');
  return {
    name: metadata.name,
    ...(clusterID !== undefined && { clusterID }),
    title: named || (metadata.name === clusterID ? shortID(clusterID) : metadata.name),
    foundBy: word(status.foundBy ?? ''),
    ...linkOf(cluster),
    isDisabled: disabledIn(cluster).length === DIRECTIONS.length,
    outgoing: direction(status.outgoing),
    incoming: direction(status.incoming),
    nodes: [],
    pods: 0,
  };
}

function linkOf({
  spec = {},
  status: { link } = {},
}: ForeignCluster): Pick<ClusterModel, 'isConnected' | 'endpoint' | 'software'> {
  const endpoint = link?.endpoint ?? spec.endpoint;
  const software = link?.software;
  return {
    isConnected: link?.connected === true,
    ...(endpoint !== undefined && { endpoint: word(endpoint) }),
    ...(software !== undefined && { software: word(software) }),
  };
}

const direction = ({ phase, reason, message, since }: PeeringState = { phase: 'None' }): DirectionModel => ({
  phase,
  ...said(reason, message),
  ...present({ since }),
});

const said = (reason?: string, message?: string): { reason?: string; message?: string } => ({
  ...(reason !== undefined && { reason: word(reason) }),
  ...(message !== undefined && message !== '' && { message: line(message) }),
});

/** Nobody has decided yet, and it stops there until a person does. */
const WAITING = 'WaitingForApproval';

function requestModel({ metadata, spec, status = {} }: PeeringRequest): DecisionModel {
  const { phase = 'Pending', reason, message, policy, offer, promised, used } = status;
  const resources = promised ?? offer?.resources;
  const shown = spec.namespaces.slice(0, 50);
  const more = spec.namespaces.length - shown.length + (spec.moreNamespaces ?? 0);
  return {
    name: metadata.name,
    waits: spec.approval === undefined && reason === WAITING,
    state: phase,
    namespaces: shown.map(word),
    ...(more > 0 && { moreNamespaces: more }),
    ...said(reason, message),
    ...present({ word: spec.approval, policy, resources, used }),
  };
}

function offerModel({ metadata, spec, status = {} }: Advertisement): DecisionModel {
  const { decision = 'Pending', reason, message, policy } = status;
  return {
    name: metadata.name,
    waits: spec.approval === undefined && reason === WAITING,
    state: decision,
    resources: spec.offer.resources,
    prices: Object.entries(spec.offer.prices).slice(0, 20).map(priceLine),
    ...said(reason, message),
    ...present({ word: spec.approval, policy }),
  };
}

const priceLine = ([resource, price]: [string, Price]): string =>
  word(`${resource} ${formatPrice(resource, price)}`);

function tunnelModel({ status = {} }: Tunnel): TunnelModel {
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  const { endpoint, rttMs, lossPercent, receivedBytes, sentBytes, mtu } = status.connection ?? {};
  const isReady = ready?.status === 'True';
  return {
    isReady,
    ...(isReady ? {} : said(ready?.reason, ready?.message)),
    ...present({ endpoint, rttMs, lossPercent, receivedBytes, sentBytes, mtu }),
  };
}

function nodeModel({ metadata, spec, status }: VirtualNode, pods: number): VirtualNodeModel {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return {
    name: spec.nodeName ?? metadata.name,
    ...(ready && { isReady: ready.status === 'True' }),
    ...(ready && ready.reason !== VIRTUAL_NODE_REASONS.ok && { reason: word(ready.reason) }),
    pods,
    resources: spec.resources,
  };
}
