/** Where each Service that a provider offers, or a policy here accepts, stands. Pure. */
import { SERVICE_REASONS, type ServiceStanding } from '../../api/advertisement.ts';
import type { AcceptedService } from '../../api/acceptance-policy.ts';
import { isClusterNamespace } from '../../api/cluster-namespaces.ts';
import { MAX_POLICY_ENTRIES } from '../../api/limits.ts';
import type { OfferedService } from '../protocol/documents.ts';
import { sourceOf, type HomeService } from './home.ts';

export interface Plan {
  /** Accepted and on offer, with nothing against it that is known beforehand. */
  wanted: HomeService[];
  standings: ServiceStanding[];
}

export interface PlanFacts {
  provider: string;
  offered: readonly OfferedService[];
  accepted: readonly AcceptedService[];
  /** Undefined: there is no such namespace. */
  namespace: (name: string) => { isPeers: boolean } | undefined;
}

const { nameTaken, noNamespace, forbiddenNamespace } = SERVICE_REASONS;

export const homeKey = ({
  homeNamespace,
  homeName,
}: Pick<HomeService, 'homeNamespace' | 'homeName'>): string => `${homeNamespace}/${homeName}`;

export function planOf(facts: PlanFacts): Plan {
  const { provider, offered } = facts;
  const byName = new Map(offered.map((service) => [sourceOf(service), service]));
  const accepted = facts.accepted.slice(0, MAX_POLICY_ENTRIES);
  const wanted: HomeService[] = [];
  const standings: ServiceStanding[] = [];
  const taken = new Map<string, string>();
  for (const { namespace, name, homeNamespace, homeName = name } of accepted) {
    const common = { namespace, name, homeNamespace, homeName };
    const found = byName.get(sourceOf(common));
    const ports = found && { ports: portsOf(found) };
    const key = homeKey(common);
    const obstacle = obstacleOf(facts, homeNamespace) ?? takenBy(taken.get(key), key);
    if (found === undefined) {
      standings.push({ ...common, state: 'NotOffered', message: 'the provider does not offer it' });
    } else if (obstacle !== undefined) {
      standings.push({ ...common, ...ports, state: 'Failed', ...obstacle });
    } else {
      taken.set(key, sourceOf(common));
      wanted.push({ provider, offered: found, homeNamespace, homeName });
      standings.push({ ...common, ...ports, state: 'Used' });
    }
  }
  const named = new Set(accepted.map(sourceOf));
  for (const service of offered) {
    if (named.has(sourceOf(service))) continue;
    const { namespace, name } = service;
    standings.push({ namespace, name, ports: portsOf(service), state: 'Offered' });
  }
  return { wanted, standings: standings.toSorted((one, other) => (orderOf(one) < orderOf(other) ? -1 : 1)) };
}

const orderOf = ({ namespace, name, homeNamespace = '', homeName = '' }: ServiceStanding): string =>
  `${namespace}/${name} ${homeNamespace}/${homeName}`;

const portsOf = ({ ports }: OfferedService): NonNullable<ServiceStanding['ports']> =>
  ports.map(({ name, protocol, port }) => ({ ...(name !== undefined && { name }), protocol, port }));

type Obstacle = Required<Pick<ServiceStanding, 'reason' | 'message'>>;

function obstacleOf({ namespace }: PlanFacts, home: string): Obstacle | undefined {
  if (isClusterNamespace(home)) {
    return { reason: forbiddenNamespace, message: `${home} is one of the cluster's own namespaces` };
  }
  const found = namespace(home);
  if (found === undefined) return { reason: noNamespace, message: `there is no namespace ${home} here` };
  return found.isPeers
    ? { reason: forbiddenNamespace, message: `${home} is the namespace of a peer` }
    : undefined;
}

const takenBy = (other: string | undefined, key: string): Obstacle | undefined =>
  other === undefined
    ? undefined
    : { reason: nameTaken, message: `${key} stands for ${other} of this provider already` };
