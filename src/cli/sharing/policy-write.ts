/** `tributary policy share` and `accept`: write a policy. */
import { type AcceptancePolicySpec, acceptancePolicies } from '../../api/acceptance-policy.ts';
import { SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import type { PeerSelector } from '../../api/peer-selector.ts';
import { type ResourceType, secrets } from '../../api/resources.ts';
import { type SharingPolicySpec, sharingPolicies } from '../../api/sharing-policy.ts';
import { API_VERSION } from '../../api/virtual-node.ts';
import type { KubeObject } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import { hasCode, ignoring, TributaryError } from '../../lib/errors.ts';
import type { Command } from '../command.ts';
import { EXIT, wrongForm } from '../command-line.ts';
import { printYaml } from '../yaml.ts';
import { differing } from '../overwrite.ts';
import { clusterCommand, type Session } from '../peering/environment.ts';
import { listClusters } from '../peering/foreign-clusters.ts';
import {
  ACCEPT_OPTIONS,
  parseAccept,
  parseShare,
  POLICY_NAME,
  type PolicyArguments,
  selectorOf,
  SHARE_OPTIONS,
} from './policy-arguments.ts';
import { valueText } from './policy-text.ts';

interface Policy<Spec> extends KubeObject {
  spec: Spec;
}

const ABOUT =
  'What is not said keeps its value, or its default; all fields: kubectl explain . A value that somebody has set is changed with ' +
  '--overwrite only.';

export const shareCommand: Command = clusterCommand({
  name: 'share',
  summary: 'Lend a part of this cluster: write a SharingPolicy.',
  about: ABOUT.replace('explain ', 'explain sharingpolicy.spec'),
  arguments: [POLICY_NAME],
  options: SHARE_OPTIONS,
  examples: [
    {
      line: 'tributary policy share friends --network-key tributary-network-key --percent 20 --cpu 16 --approval Automatic',
      does: 'Lend a fifth of what is free, at most 16 CPUs, to the clusters that hold our key',
    },
    {
      line: 'tributary policy share milan --peers milan --prices cpu=0.02EUR,memory=0.005EUR',
      does: 'Ask for a price, per core or GiB and hour',
    },
    {
      line: 'tributary policy share milan --peers milan --dry-run',
      does: 'Print the policy for one cluster',
    },
  ],
  parse: parseShare,
  run: async (args, session) => {
    const isOpen = args.peers?.anyone === true && args.spec.approval === 'Automatic';
    if (isOpen)
      session.io.err('Warning: every cluster that reaches this one may then run pods here, unasked.\n');
    return write<SharingPolicySpec>(sharingPolicies, args, session);
  },
});

export const acceptCommand: Command = clusterCommand({
  name: 'accept',
  summary: 'Take what other clusters lend: write an AcceptancePolicy.',
  about: ABOUT.replace('explain ', 'explain acceptancepolicy.spec'),
  arguments: [POLICY_NAME],
  options: ACCEPT_OPTIONS,
  examples: [
    {
      line: 'tributary policy accept friends --network-key tributary-network-key --approval Automatic --min-cpu 2',
      does: 'Ask the clusters that hold our key, and take offers of 2 CPUs and more',
    },
  ],
  parse: parseAccept,
  run: async (args, session) => write<AcceptancePolicySpec>(acceptancePolicies, args, session),
});

async function write<Spec extends { peers: PeerSelector }>(
  type: ResourceType<Policy<Spec>>,
  args: PolicyArguments<Spec>,
  session: Session,
): Promise<number> {
  const { client, io, signal } = session;
  const { name, isDry } = args;
  const before = await client.get(type, { name }, { signal }).catch(ignoring('NotFound'));
  const spec = { ...before?.spec, ...(await wantedOf(type, args, { before, session })) } as Spec;
  const names = { apiVersion: API_VERSION, kind: type.kind };
  if (isDry) {
    io.out(printYaml([{ ...names, metadata: { name }, spec }]));
    return EXIT.ok;
  }
  let what = 'is unchanged';
  if (before === undefined) {
    await client.create(type, { ...names, metadata: { name }, spec }, { signal });
    what = 'made';
  } else if (!deepEqual(spec, before.spec)) {
    // With its resourceVersion: what somebody writes meanwhile is not overwritten.
    await client.replace(type, { ...before, spec }, { signal });
    what = 'changed';
  }
  io.out(`${type.kind} ${name} ${what}\n`);
  return EXIT.ok;
}

/** Throws where it would change what somebody has set, and nobody has said that it may. */
async function wantedOf<Spec extends { peers: PeerSelector }>(
  { kind }: ResourceType<Policy<Spec>>,
  { name, spec, peers: who, mayOverwrite }: PolicyArguments<Spec>,
  { before, session }: { before: Policy<Spec> | undefined; session: Session },
): Promise<Partial<Spec>> {
  if (before === undefined && who === undefined) {
    throw wrongForm('say whom it is about: --peers, --network-key or --anyone');
  }
  if (who?.networkKeySecretRef !== undefined) await checkKey(who.networkKeySecretRef.name, session);
  const peers = who && selectorOf(who, who.names === undefined ? [] : await listClusters(session));
  const wanted = { ...(peers && { peers }), ...spec } as Partial<Spec>;
  if (before === undefined || mayOverwrite) return wanted;
  const [first] = differing(wanted, before.spec);
  if (first === undefined) return wanted;
  throw new TributaryError(
    'Conflict',
    `${kind} ${name} has ${first}: ${valueText(first, before.spec[first])}; to change that, add --overwrite`,
  );
}

/** Who may not read Secrets is believed. */
async function checkKey(name: string, { client, signal }: Session): Promise<void> {
  const ref = { namespace: SYSTEM_NAMESPACE, name };
  try {
    await client.get(secrets, ref, { signal }).catch(ignoring('Forbidden'));
  } catch (error) {
    if (!hasCode(error, 'NotFound')) throw error;
    const message = `there is no Secret ${SYSTEM_NAMESPACE}/${name}; make the key with: tributary network-key create`;
    throw new TributaryError('NotFound', message, { cause: error });
  }
}
