import type { AcceptedService } from '../../api/acceptance-policy.ts';
import { type ProviderServiceStatus, SERVICE_REASONS } from '../../api/advertisement.ts';
import { isClusterNamespace } from '../../api/cluster-namespaces.ts';
import { MAX_POLICY_ENTRIES, TUNNEL_LIMITS } from '../../api/limits.ts';
import { TributaryError } from '../../lib/errors.ts';
import { formatAddress, parseAddress } from '../../lib/prefix.ts';
import type { OfferedService, ServicesDocument } from '../protocol/documents.ts';
import { type HomeService, type ServiceProblem, sourceOf } from './home-services.ts';

interface Plan {
  /** Services that are accepted and offered, and against which nothing is known beforehand. */
  wanted: HomeService[];
  statuses: ProviderServiceStatus[];
}

interface PlanFacts {
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

/** Which home Services there are to be, and the status of each Service that is offered or accepted. Pure. */
export function planOf(facts: PlanFacts): Plan {
  const { provider, offered } = facts;
  const byName = new Map(offered.map((service) => [sourceOf(service), service]));
  const accepted = facts.accepted.slice(0, MAX_POLICY_ENTRIES);
  const wanted: HomeService[] = [];
  const statuses: ProviderServiceStatus[] = [];
  const taken = new Map<string, string>();
  for (const { namespace, name, homeNamespace, homeName = name } of accepted) {
    const common = { namespace, name, homeNamespace, homeName };
    const found = byName.get(sourceOf(common));
    const ports = found && { ports: portsOf(found) };
    const key = homeKey(common);
    const obstacle = obstacleOf(facts, homeNamespace) ?? takenBy(taken.get(key), key);
    if (found === undefined) {
      statuses.push({ ...common, state: 'NotOffered', message: 'the provider does not offer it' });
    } else if (obstacle !== undefined) {
      statuses.push({ ...common, ...ports, state: 'Failed', ...obstacle });
    } else {
      taken.set(key, sourceOf(common));
      wanted.push({ provider, offered: found, homeNamespace, homeName });
      statuses.push({ ...common, ...ports, state: 'Used' });
    }
  }
  const named = new Set(accepted.map(sourceOf));
  for (const service of offered) {
    if (named.has(sourceOf(service))) continue;
    const { namespace, name } = service;
    statuses.push({ namespace, name, ports: portsOf(service), state: 'Offered' });
  }
  return { wanted, statuses: statuses.toSorted((one, other) => (orderOf(one) < orderOf(other) ? -1 : 1)) };
}

const orderOf = ({ namespace, name, homeNamespace = '', homeName = '' }: ProviderServiceStatus): string =>
  `${namespace}/${name} ${homeNamespace}/${homeName}`;

const portsOf = ({ ports }: OfferedService): NonNullable<ProviderServiceStatus['ports']> =>
  ports.map(({ name, protocol, port }) => ({ ...(name !== undefined && { name }), protocol, port }));

function obstacleOf({ namespace }: PlanFacts, home: string): ServiceProblem | undefined {
  if (isClusterNamespace(home)) {
    return { reason: forbiddenNamespace, message: `${home} is one of the cluster's own namespaces` };
  }
  const found = namespace(home);
  if (found === undefined) return { reason: noNamespace, message: `there is no namespace ${home} here` };
  return found.isPeers
    ? { reason: forbiddenNamespace, message: `${home} is the namespace of a peer` }
    : undefined;
}

const takenBy = (other: string | undefined, key: string): ServiceProblem | undefined =>
  other === undefined
    ? undefined
    : { reason: nameTaken, message: `${key} stands for ${other} of this provider already` };

const MAX_TOLD = 5;

/**
 * Checks what a provider says of its Services, beyond the form that src/peering/protocol/forms.ts checks. Returns it with
 * all addresses in one spelling; whether they are the provider's own pods is seen where they are translated. All or
 * nothing is taken, since half of what was meant would be taken for all. Throws Invalid, for the provider to read.
 */
export function checkServices({ services }: ServicesDocument): ServicesDocument {
  const problems: string[] = [];
  const names = new Set<string>();
  let places = 0;
  const checked = services.map((service) => {
    const name = `${service.namespace}/${service.name}`;
    if (names.has(name)) problems.push(`${name} is there twice`);
    names.add(name);
    places += service.ports.length * service.endpoints.length;
    problems.push(...portProblems(service).map((problem) => `${name}: ${problem}`));
    return { ...service, endpoints: endpointsOf(service, (problem) => problems.push(`${name}: ${problem}`)) };
  });
  if (places > TUNNEL_LIMITS.offered) {
    problems.push(`${places} addresses with ports in all, at most ${TUNNEL_LIMITS.offered} are taken`);
  }
  if (problems.length > 0) {
    const more = problems.length > MAX_TOLD ? `; and ${problems.length - MAX_TOLD} more` : '';
    throw new TributaryError('Invalid', `services: ${problems.slice(0, MAX_TOLD).join('; ')}${more}`);
  }
  return { services: checked };
}

/** The rules that the API server has for ports: otherwise it would refuse the home Service later. */
function portProblems({ ports }: OfferedService): string[] {
  if (ports.length === 0) return ['it has no ports'];
  const problems: string[] = [];
  if (ports.length > 1 && ports.some(({ name }) => name === undefined)) {
    problems.push('of several ports each must have a name');
  }
  if (new Set(ports.map(({ name }) => name)).size < ports.length) problems.push('two ports have one name');
  if (new Set(ports.map(({ port, protocol }) => `${protocol}/${port}`)).size < ports.length) {
    problems.push('two ports have one number');
  }
  return problems;
}

function endpointsOf(
  { endpoints }: OfferedService,
  complain: (problem: string) => void,
): OfferedService['endpoints'] {
  const seen = new Set<string>();
  return endpoints.flatMap(({ address: text, ready }) => {
    const parsed = parseAddress(text);
    if (parsed === undefined) {
      complain(`${text} is no address`);
      return [];
    }
    const address = formatAddress(parsed);
    if (seen.has(address)) complain(`${address} is there twice`);
    seen.add(address);
    return [{ address, ready }];
  });
}
