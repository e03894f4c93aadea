/** `tributary policy`: what this cluster lends, and what it takes from others. */
import {
  type AcceptancePolicy,
  acceptancePolicies,
  type AcceptancePolicySpec,
} from '../../api/acceptance-policy.ts';
import { ANNOTATION_END_NOW } from '../../api/names.ts';
import { peeringRequests } from '../../api/peering-request.ts';
import type { Prices } from '../../api/prices.ts';
import type { ResourceType } from '../../api/resources.ts';
import { type SharingPolicy, sharingPolicies, type SharingPolicySpec } from '../../api/sharing-policy.ts';
import type { ResourceList } from '../../api/wire.ts';
import { deleteByUid } from '../../kube/write.ts';
import { ignoring, TributaryError } from '../../lib/errors.ts';
import { agreed, YES } from '../agreement.ts';
import { type Command, defineCommand } from '../command.ts';
import { EXIT, wrongForm } from '../command-line.ts';
import { formatOf, OUTPUT, printedAs } from '../output.ts';
import { clusterCommand, type Session } from '../peering/environment.ts';
import { table } from '../peering/terminal-text.ts';
import { POLICY_NAME } from './policy-arguments.ts';
import { amountsText, peersText, pricesText } from './policy-text.ts';
import { acceptCommand, shareCommand } from './policy-write.ts';

type Policy = SharingPolicy | AcceptancePolicy;

const TYPES = { share: sharingPolicies, accept: acceptancePolicies } as const;
type Does = keyof typeof TYPES;

const HEAD = ['NAME', 'DOES', 'PEERS', 'APPROVAL', 'HOW MUCH', 'IN USE BY'];

const listCommand = clusterCommand({
  name: 'list',
  summary: 'List what is lent, and what is taken.',
  options: OUTPUT,
  parse: formatOf,
  run: async (format, session) => {
    const { client, signal } = session;
    const [{ items: sharing }, { items: accepting }] = await Promise.all([
      client.list(sharingPolicies, { signal }),
      client.list(acceptancePolicies, { signal }),
    ]);
    const rows = [
      ...sharing.map((one) => row('share', one, lentText(one.spec))),
      ...accepting.map((one) => row('accept', one, takenText(one.spec))),
    ];
    const none =
      'There is no policy: nothing is lent, and nothing is taken by itself. How to make one: tributary policy share --help\n';
    const text = (): string => (rows.length === 0 ? session.pastable(none) : table(HEAD, rows));
    session.io.out(printedAs(format, [...sharing, ...accepting], text));
    return EXIT.ok;
  },
});

const row = (does: Does, { metadata, spec, status }: Policy, amount: string): string[] => [
  metadata.name,
  does,
  peersText(spec.peers),
  spec.approval ?? 'Manual',
  amount,
  String(status?.peers?.length ?? 0),
];

const lentText = ({ sharePercent = 50, limits, prices }: SharingPolicySpec): string =>
  [[`${sharePercent} %`, ...bound('at most', limits)].join(', '), ...priced('for', prices)].join('; ');

function takenText({ minimum, ceilings, maxPrices }: AcceptancePolicySpec): string {
  const parts = [
    ...bound('at least', minimum),
    ...bound('at most', ceilings),
    ...priced('for at most', maxPrices),
  ];
  return parts.length === 0 ? 'all that is offered' : parts.join('; ');
}

const bound = (which: string, amounts: ResourceList = {}): string[] =>
  Object.keys(amounts).length === 0 ? [] : [`${which} ${amountsText(amounts)}`];

const priced = (which: string, prices: Prices = {}): string[] =>
  Object.keys(prices).length === 0 ? [] : [`${which} ${pricesText(prices)}`];

interface DeleteArguments {
  name: string;
  does: Does | undefined;
  isNow: boolean;
  isSure: boolean;
}

const deleteCommand = clusterCommand({
  name: 'delete',
  summary: 'Delete a policy; pods of peers that it has let in end.',
  about: 'If peers use it, you are asked first; where there is no terminal, add --yes.',
  arguments: [POLICY_NAME],
  options: {
    kind: { value: 'KIND', text: 'which, where both have the name', choices: ['share', 'accept'] },
    now: { text: 'pods of its peers end at once, without a grace time' },
    yes: YES,
  },
  examples: [{ line: 'tributary policy delete friends --kind share', does: 'Lend to friends no longer' }],
  parse: ({ positionals: [name = ''], values, flags }): DeleteArguments => ({
    name,
    does: values['kind'] as Does | undefined,
    isNow: flags.has('now'),
    isSure: flags.has('yes'),
  }),
  run: remove,
});

export const policyCommand: Command = defineCommand({
  name: 'policy',
  summary: 'What this cluster lends, and what it takes from others.',
  children: [listCommand, shareCommand, acceptCommand, deleteCommand],
});

async function remove(args: DeleteArguments, session: Session): Promise<number> {
  const { client, io, signal } = session;
  const { does, policy } = await find(args, session);
  const { name } = policy.metadata;
  const peers = policy.status?.peers ?? [];
  if (args.isNow && does === 'accept')
    throw wrongForm('--now is for what is lent: pods of this cluster are drained');
  if (peers.length > 0 && !args.isSure && !(await isConfirmed(does, peers, session))) {
    io.err('Nothing was deleted.\n');
    return EXIT.failed;
  }
  await deleteByUid(client, TYPES[does] as ResourceType<Policy>, policy, { signal });
  io.out(`${TYPES[does].kind} ${name} deleted\n`);
  if (args.isNow) await endNow(peers, session);
  return EXIT.ok;
}

async function find(
  { name, does }: DeleteArguments,
  { client, signal }: Session,
): Promise<{ does: Does; policy: Policy }> {
  const found: { does: Does; policy: Policy }[] = [];
  for (const one of ['share', 'accept'] as const) {
    if (does !== undefined && does !== one) continue;
    const type = TYPES[one] as ResourceType<Policy>;
    const policy = await client.get(type, { name }, { signal }).catch(ignoring('NotFound'));
    if (policy !== undefined) found.push({ does: one, policy });
  }
  const [first, second] = found;
  if (first === undefined) {
    const kind = does === undefined ? 'policy' : TYPES[does].kind;
    throw new TributaryError('NotFound', `there is no ${kind} "${name}"; see: tributary policy list`);
  }
  if (second !== undefined) {
    throw new TributaryError(
      'Conflict',
      `a SharingPolicy and an AcceptancePolicy are named ${name}: add --kind share or accept`,
    );
  }
  return first;
}

async function isConfirmed(does: Does, peers: readonly string[], session: Session): Promise<boolean> {
  const what = does === 'share' ? 'their pods here end' : 'pods of this cluster over there come home';
  const said = `${peers.length} peer(s) use it (${peers.join(', ')}): ${what}, unless another policy selects them`;
  return agreed(session, { question: 'Delete it?', said });
}

async function endNow(peers: readonly string[], { client, io, signal }: Session): Promise<void> {
  const body = { metadata: { annotations: { [ANNOTATION_END_NOW]: 'true' } } };
  for (const name of peers) {
    const patched = await client
      .patch(peeringRequests, { name }, { type: 'merge', body }, { signal })
      .catch(ignoring('NotFound'));
    if (patched !== undefined) io.out(`Pods of ${name} end at once, unless another policy selects it\n`);
  }
}
