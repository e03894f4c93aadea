import { isFinished } from '../api/pod.ts';
import { isRefusedForGood } from '../api/sent-abroad.ts';
import type { VirtualNode } from '../api/virtual-node.ts';
import type { Pod } from '../api/wire.ts';
import { tellAnswers } from '../kube/server-news.ts';
import { refOf } from '../kube/store.ts';
import { deepEqual } from '../lib/equality.ts';
import type { Component } from '../lib/lifecycle.ts';
import { homeReferenceName, podReferences } from './forge/references.ts';
import { tokenSecretUid } from './forge/tokens.ts';
import { podKey, referenceKey, tokenKey, tokenKeyOf } from './home-pods.ts';
import type { Wired } from './wired.ts';
import { connectStorage, lookAtClaims, lookAtClaimsOf } from './storage/connect.ts';
import type { Tenant } from './tenants.ts';
import {
  connectMirror,
  enqueueMirrored,
  enqueuePods,
  enqueuePodsAndTokens,
  mirrorListener,
  openMirror,
  wakeDraining,
} from './reflect/connect.ts';

/** Says which change of which cache concerns which key of which controller. */
export function connect(provider: Wired): void {
  connectHomePods(provider);
  connectTenants(provider);
  connectNode(provider);
  connectMirror(provider);
  connectStorage(provider);
}

/** Its place in the order of the start: what acts in tenants comes after it. */
export const openingTenants = ({ tenants, namespaces, nodePorts }: Wired): Component => ({
  name: 'tenants',
  start: () => {
    tenants.open();
    tenants.set(namespaces.watched);
  },
  stop: async () => {
    nodePorts.stop();
    await tenants.stop();
  },
});

/** A pod of that namespace over there runs at home, or no longer. It keeps its name on its whole way. */
export function enqueueReturned(
  { tenants, controllers }: Wired,
  tenantNamespace: string,
  name: string,
): void {
  for (const { mapping } of tenants.all()) {
    if (mapping.tenantNamespace === tenantNamespace) controllers.pods.add(`${mapping.homeNamespace}/${name}`);
  }
}

function connectHomePods(provider: Wired): void {
  provider.homePods.onChange((key, current, previous) => {
    if (moves(current, previous)) provider.events.podMoves();
    if (current === undefined || !provider.pods.isEcho(current)) provider.controllers.pods.add(key);
    if (!needTheSame(current, previous)) addDependents(provider, current, previous);
  });
}

/** A status alone changes neither references nor tokens, and comes far more often than anything else. */
const needTheSame = (one: Pod | undefined, other: Pod | undefined): boolean =>
  one !== undefined &&
  other !== undefined &&
  one.metadata.uid === other.metadata.uid &&
  one.metadata.generation === other.metadata.generation &&
  isFinished(one) === isFinished(other) &&
  isRefusedForGood(one) === isRefusedForGood(other);

/** It comes, starts, begins to go, or is gone. */
const moves = (current: Pod | undefined, previous: Pod | undefined): boolean =>
  current?.status?.phase !== previous?.status?.phase || isEnding(current) !== isEnding(previous);

const isEnding = (pod: Pod | undefined): boolean => pod?.metadata.deletionTimestamp !== undefined;

/** What these pods need over there is looked at again. */
export function addDependents(
  { controllers }: Pick<Wired, 'controllers'>,
  ...states: readonly (Pod | undefined)[]
): void {
  const pods = states.filter((pod) => pod !== undefined);
  const references = pods.flatMap((pod) =>
    podReferences(pod).map(({ kind, name }) => referenceKey(kind, pod.metadata.namespace ?? '', name)),
  );
  for (const key of new Set(references)) controllers.reflect.add(key);
  for (const key of new Set(pods.map(tokenKey))) controllers.tokens.add(key);
}

function connectTenants(provider: Wired): void {
  const { tenants, homePods, controllers, nodeName, reflector, tokens } = provider;
  const mirrored = mirrorListener(provider);
  tenants.listen({
    ...mirrored,
    opened: (tenant) => {
      mirrored.opened(tenant);
      provider.events.follow(tenant);
      lookAtClaimsOf(provider, tenant);
    },
    pod: (homeKey) => {
      // All are looked at when they are all known.
      if (tenants.of(refOf(homeKey).namespace ?? '')?.isFilling === true) return;
      controllers.pods.add(homeKey);
      wakeDraining(provider, homeKey);
    },
    contact: (homeNamespace) => {
      controllers.node.add(nodeName);
      const pods = tenants.of(homeNamespace)?.pods;
      // They have waited for the first list, which does not come yet.
      if (pods?.synced === false && pods.contact.error !== undefined) enqueuePods(provider, homeNamespace);
    },
    pods: (homeNamespace) => {
      void homePods.eachInTurns((pod) => {
        const { namespace, deletionTimestamp } = pod.metadata;
        if (namespace === homeNamespace && deletionTimestamp !== undefined)
          controllers.pods.addSlow(podKey(pod));
      });
    },
    synced: (homeNamespace) => {
      controllers.node.add(nodeName);
      enqueueNamespace(provider, homeNamespace);
    },
    reference: (side, kind, homeNamespace, name) => {
      // It may have been the last thing that kept a namespace that is being taken out.
      if (side === 'remote' && !provider.namespaces.isAsked(homeNamespace)) controllers.node.add(nodeName);
      const uid = side === 'remote' && kind === 'Secret' ? tokenSecretUid(name) : undefined;
      if (uid !== undefined) {
        for (const owner of new Set([uid, tokens.ownerOf(homeNamespace, uid)])) {
          controllers.tokens.add(`${homeNamespace}/${owner}`);
          for (const pod of homePods.keysByIndex('uid', owner)) controllers.pods.add(pod);
        }
        return;
      }
      const homeName = side === 'home' ? name : homeReferenceName(kind, name);
      const key = referenceKey(kind, homeNamespace, homeName);
      // At home most objects are referenced by nobody; over there each is a copy of ours.
      if (homePods.hasIndexed('references', key) || side === 'remote') controllers.reflect.add(key);
      else if (reflector.concerns(key)) controllers.reflect.addSlow(key);
      // A ConfigMap may be in thousands of pods.
      void homePods.eachKeyInTurns(
        (pod) => controllers.pods.add(pod),
        homePods.keysByIndex('references', key),
      );
    },
  });
}

/** Everything of one namespace, at low priority: the caches have just become complete, or contact is back. */
function enqueueNamespace(provider: Wired, homeNamespace: string): void {
  const { tenants, homePods, controllers } = provider;
  void homePods.eachIndexedInTurns('uid', (uid, key) => {
    if (!key.startsWith(`${homeNamespace}/`)) return;
    controllers.pods.addSlow(key);
    controllers.tokens.add(tokenKeyOf(homeNamespace, uid));
  });
  for (const reference of homePods.valuesOf('references'))
    if (reference.split('/')[1] === homeNamespace) controllers.reflect.add(reference);
  const tenant = tenants.of(homeNamespace);
  if (tenant === undefined) return;
  enqueueMirrored(provider, tenant);
  enqueueSelected(provider, tenant);
  void tenant.pods.eachKeyInTurns((key) => controllers.pods.addSlow(`${homeNamespace}/${refOf(key).name}`));
  enqueueCopies(provider, tenant);
}

/** All copies of ours that are over there for pods. */
function enqueueCopies({ controllers }: Wired, { mapping, caches }: Tenant): void {
  const { homeNamespace } = mapping;
  for (const kind of ['ConfigMap', 'Secret'] as const) {
    for (const { metadata } of caches[kind].remote.list()) {
      const uid = tokenSecretUid(metadata.name);
      if (uid === undefined) {
        const name = homeReferenceName(kind, metadata.name);
        controllers.reflect.add(referenceKey(kind, homeNamespace, name));
      } else controllers.tokens.add(`${homeNamespace}/${uid}`);
    }
  }
}

/** ConfigMaps and Secrets that a rule selects, after those that pods wait for. */
function enqueueSelected({ controllers, reflector }: Wired, { mapping, caches }: Tenant): void {
  for (const kind of ['ConfigMap', 'Secret'] as const) {
    for (const { metadata } of caches[kind].home.list()) {
      const key = referenceKey(kind, mapping.homeNamespace, metadata.name);
      if (reflector.concerns(key)) controllers.reflect.addSlow(key);
    }
  }
}

const mappingsOf = (virtualNode: VirtualNode | undefined): unknown => [
  virtualNode?.spec.namespaces,
  virtualNode?.status?.namespaces,
  virtualNode?.spec.ingressClasses,
  virtualNode?.spec.podAdditions,
];

/** Pods there need again what nobody kept for them. */
function openedAgain(current: VirtualNode | undefined, previous: VirtualNode | undefined): string[] {
  const before = openIn(previous);
  return [...openIn(current)].filter((homeNamespace) => !before.has(homeNamespace));
}

const openIn = (virtualNode: VirtualNode | undefined): Set<string> =>
  new Set(
    (virtualNode?.spec.namespaces ?? []).filter(({ leaving }) => !leaving).map((one) => one.homeNamespace),
  );

function connectNode(provider: Wired): void {
  const { nodes, virtualNodes, siblings, contact, homeLease, foreign, tenants, controllers, nodeName } =
    provider;
  provider.room.onChange(() => controllers.node.add(nodeName));
  nodes.onChange(() => controllers.node.add(nodeName));
  virtualNodes.onChange((_key, current, previous) => {
    tenants.set(provider.namespaces.watched);
    controllers.node.add(nodeName);
    if (!deepEqual(current?.spec.homeApiServer, previous?.spec.homeApiServer)) enqueuePodsAndTokens(provider);
    // Pods may be created only in namespaces that are asked for and recorded.
    if (deepEqual(mappingsOf(current), mappingsOf(previous))) return;
    homeLease.wake();
    provider.nodePorts.look();
    void provider.homePods.eachKeyInTurns((key) => controllers.pods.addSlow(key));
    for (const homeNamespace of openedAgain(current, previous)) enqueueNamespace(provider, homeNamespace);
    for (const tenant of tenants.all()) {
      openMirror(provider, tenant);
      enqueueSelected(provider, tenant);
      // Nothing is kept for later any more.
      if (!provider.namespaces.isAsked(tenant.mapping.homeNamespace)) enqueueCopies(provider, tenant);
    }
  });
  siblings.onChange(() => {
    // Whoever leaves a namespace may leave its copies to others, or be the last one there.
    const left = [...tenants.all()].filter(
      ({ mapping }) => !provider.namespaces.isAsked(mapping.homeNamespace),
    );
    if (left.length > 0) controllers.node.add(nodeName);
    for (const tenant of left) {
      enqueueMirrored(provider, tenant);
      enqueueCopies(provider, tenant);
    }
  });
  foreign.onChange(() => contact.probe());
  let wasAway = false;
  contact.onChange(() => {
    controllers.node.add(nodeName);
    wasAway ||= contact.state.away;
    if (contact.state.away) void provider.homePods.eachKeyInTurns((key) => controllers.pods.add(key));
    if (!contact.state.ok) return;
    // What was changed at home meanwhile is carried across first, and is seen only by these caches; statuses come after it.
    if (wasAway) tellAnswers(foreign.client);
    wasAway = false;
    homeLease.wake();
    for (const tenant of tenants.all())
      if (!tenant.isFilling) enqueueNamespace(provider, tenant.mapping.homeNamespace);
    lookAtClaims(provider);
  });
}
