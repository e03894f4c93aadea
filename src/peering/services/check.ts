/** What a provider's word of its Services must be beyond its form, which src/peering/protocol/forms.ts checks. Pure. */
import { TUNNEL_LIMITS } from '../../api/limits.ts';
import { TributaryError } from '../../lib/errors.ts';
import { formatAddress, parseAddress } from '../../lib/prefix.ts';
import type { OfferedService, ServicesDocument } from '../protocol/documents.ts';

const MAX_TOLD = 5;

/**
 * Addresses in one spelling; whether they are the provider's own pods is seen where they are translated. All or
 * nothing: half of what was meant would be taken for all.
 *
 * @throws Invalid, for the provider to read.
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

/** As the API server has it of a Service, which would refuse the home Service later. */
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
