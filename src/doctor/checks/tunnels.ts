import { conditionOf } from '../../api/conditions.ts';
import {
  GATEWAY_CONFIG_MAP,
  NETWORK_CONFIG_MAP,
  readGatewayFacts,
  readOwnNetwork,
} from '../../api/own-network.ts';
import { type Tunnel, TUNNEL_CONDITIONS as CONDITIONS, TUNNEL_REASONS as REASONS } from '../../api/tunnel.ts';
import type { Condition } from '../../api/wire.ts';
import { overlaps, tryPrefix } from '../../lib/prefix.ts';
import { type Facts, itemsOf } from '../facts.ts';
import { type Cure, type Finding, Findings } from '../finding.ts';
import { gatewayLogs, titleOfID, withoutWireGuard } from '../subjects.ts';

export function tunnelFindings(facts: Facts): readonly Finding[] {
  const findings = new Findings('tunnels');
  for (const tunnel of itemsOf(facts.lists.tunnels)) {
    const subject = titleOfID(facts, tunnel.metadata.name);
    judgePackets(findings, tunnel, { subject, facts });
    judgeHost(findings, tunnel, { subject, facts });
  }
  return findings.all();
}

interface About {
  subject: string;
  facts: Facts;
}

function judgePackets(findings: Findings, tunnel: Tunnel, { subject, facts }: About): void {
  const tried = `packets through the tunnel to ${subject} and back`;
  const condition = conditionOf(tunnel, CONDITIONS.connected);
  if (condition === undefined) {
    return findings.unknown(subject, {
      tried,
      cameBack: 'no gateway has measured it yet; the lines "agents" say whether one runs',
    });
  }
  const { rttMs, lossPercent } = tunnel.status?.connection ?? {};
  const numbers = rttMs === undefined ? '' : ` (${rttMs} ms, ${lossPercent ?? 0} % lost)`;
  const cameBack = `${condition.reason}: ${condition.message}`;
  if (condition.status === 'Unknown') return findings.unknown(subject, { tried, cameBack });
  if (condition.status === 'False')
    return findings.problem(subject, { tried, cameBack }, packetCure(tunnel, condition, facts));
  if (condition.reason === REASONS.lossy) {
    return findings.warn(
      subject,
      { tried, cameBack: `${cameBack}${numbers}` },
      { remedy: 'look for a link that is full or bad between the two gateways' },
    );
  }
  findings.ok(subject, { tried, cameBack: `they come back${numbers}` });
}

/** `udp from A to B:PORT`, both ways: a test, and a firewall's owner, can act on it. */
function packetCure(tunnel: Tunnel, { reason }: Condition, facts: Facts): Cure {
  if (withoutWireGuard(facts) !== undefined)
    return { remedy: 'nothing can come or go: the line "WireGuard at the gateway" says why' };
  const ours = ownEndpoint(facts) ?? 'our gateway';
  const theirs = endpointOf(tunnel) ?? 'the peer';
  switch (reason) {
    case REASONS.noHandshake:
      return {
        remedy: `nothing comes from the peer: let UDP through from ${ours} to ${theirs}, and back from ${theirs} to ${ours}. Whether a gateway runs over there is shown by: tributary doctor`,
      };
    case REASONS.oneWay:
    case REASONS.noAnswer:
      return {
        remedy: `packets of the peer arrive, ours do not: let UDP through from ${ours} to ${theirs}. If it is let through, look for the cause over there: tributary doctor`,
      };
    case REASONS.noEndpoint:
      return endpointCure(facts);
    default:
      return { remedy: 'the other lines about this peer say what to do' };
  }
}

const NEEDS_ENDPOINT = 'one of the two gateways needs an address that the other one can dial';

const endpointCure = ({ installation }: Facts): Cure =>
  installation === undefined
    ? {
        remedy: `${NEEDS_ENDPOINT}: run \`tributary manifests gateway --tunnel-endpoint HOST:PORT\` there`,
      }
    : {
        remedy: `${NEEDS_ENDPOINT}. If it is ours, name it; else the same is to be done over there`,
        run: 'tributary upgrade --tunnel-endpoints HOST:PORT',
      };

const endpointOf = ({ spec, status }: Tunnel): string | undefined =>
  status?.connection?.endpoint ?? spec.peer?.endpoints[0];

function ownEndpoint({ lists }: Facts): string | undefined {
  const map = itemsOf(lists.configMaps).find(({ metadata }) => metadata.name === GATEWAY_CONFIG_MAP);
  return readGatewayFacts(map?.data)?.endpoints[0];
}

function judgeHost(findings: Findings, tunnel: Tunnel, { subject, facts }: About): void {
  const condition = conditionOf(tunnel, CONDITIONS.configured);
  if (condition === undefined || condition.status === 'Unknown') return;
  const said = { tried: "links, routes and rules of the gateway's host", cameBack: condition.message };
  if (condition.status === 'True') return findings.ok(subject, said);
  // It concerns all tunnels, and is told once, before what follows from it.
  if (condition.reason === REASONS.noWireGuard) return;
  findings.problem(subject, said, {
    remedy: 'the host refuses what the message names; something else on it may hold that',
    run: gatewayLogs(facts),
  });
}

const LEAST_MTU = 1280;

/** Sizes of packets: what the path carries, and what the link is set to. */
export function mtuFindings(facts: Facts): readonly Finding[] {
  const findings = new Findings('mtu');
  for (const tunnel of itemsOf(facts.lists.tunnels)) {
    const { mtu, linkMtu } = tunnel.status?.connection ?? {};
    if (mtu === undefined || linkMtu === undefined) continue;
    const subject = titleOfID(facts, tunnel.metadata.name);
    const said = {
      tried: `largest packet through the tunnel to ${subject}; it is set to ${linkMtu} bytes`,
      cameBack: `${mtu} bytes go through`,
    };
    if (mtu >= linkMtu) findings.ok(subject, said);
    else {
      findings.warn(subject, said, sizeCure({ mtu, linkMtu }, facts));
    }
  }
  return findings.all();
}

function sizeCure({ mtu, linkMtu }: { mtu: number; linkMtu: number }, { installation }: Facts): Cure {
  const remedy = `it works, since larger packets are refused or cut. To avoid that, let the path carry ${linkMtu + 80} bytes`;
  // Smaller ones are refused by the roles, since IPv6 needs as much.
  if (mtu < LEAST_MTU) return { remedy };
  return installation === undefined
    ? { remedy: `${remedy}, or apply gateway and node again with --tunnel-mtu ${mtu}` }
    : { remedy: `${remedy}, or send smaller ones`, run: `tributary upgrade --tunnel-mtu ${mtu}` };
}

/** Prefixes that mean two things at once. */
export function addressFindings(facts: Facts): readonly Finding[] {
  const findings = new Findings('addresses');
  const maps = itemsOf(facts.lists.configMaps);
  const dataOf = (name: string): Record<string, string> | undefined =>
    maps.find(({ metadata }) => metadata.name === name)?.data;
  const routes = readGatewayFacts(dataOf(GATEWAY_CONFIG_MAP))?.localRoutes ?? [];
  // It holds the routes, too, joined with others.
  const reserved = (readOwnNetwork(dataOf(NETWORK_CONFIG_MAP))?.reserved ?? []).filter(
    (range) => !routes.some((route) => overlapping(range, route)),
  );
  for (const tunnel of itemsOf(facts.lists.tunnels)) {
    const { name } = tunnel.metadata;
    const subject = titleOfID(facts, name);
    const tried = `addresses as which ${subject} is seen here, against routes of the gateway's host and reserved ranges`;
    const views = (tunnel.status?.views ?? []).map(({ as }) => as);
    const collisions = views.flatMap((view) =>
      [...routes, ...reserved]
        .filter((route) => overlapping(view, route))
        .map((route) => ({ route, text: `${view} overlaps ${route}` })),
    );
    const condition = conditionOf(tunnel, CONDITIONS.addresses);
    if (collisions.length > 0) {
      findings.problem(
        subject,
        { tried, cameBack: `${collisions.map(({ text }) => text).join('; ')}: one hides the other` },
        {
          remedy:
            'have other addresses chosen for it, apart from these routes: the Tunnel is made again at once. To keep them free also from a ' +
            `gateway on a node without these routes, ${reserving([...new Set(collisions.map(({ route }) => route))], facts)}`,
          run: `kubectl delete tunnel ${name}`,
        },
      );
    } else if (condition?.status === 'False') {
      findings.problem(
        subject,
        { tried, cameBack: condition.message },
        {
          remedy:
            condition.reason === REASONS.poolExhausted
              ? largerPool(facts)
              : 'the message names the range; the peer has to correct it, or it may only need a moment',
        },
      );
    } else if (views.length === 0) findings.unknown(subject, { tried, cameBack: 'none yet' });
    else findings.ok(subject, { tried, cameBack: `${views.join(', ')}: no overlap` });
  }
  return findings.all();
}

/** Lists that are given to an upgrade take the place of those that are recorded. */
const reserving = (ranges: readonly string[], { installation }: Facts): string =>
  installation === undefined
    ? `give the role cluster --reserved-cidrs ${ranges.join(',')}`
    : `add ${ranges.join(',')} to the reserved ranges: tributary upgrade --reserved-cidrs, with all of them`;

const largerPool = ({ installation }: Facts): string =>
  installation === undefined
    ? 'give the role cluster a larger --view-pools'
    : 'give it a larger range: tributary upgrade --view-pools, with all of them';

function overlapping(one: string, other: string): boolean {
  const [first, second] = [tryPrefix(one), tryPrefix(other)];
  return first !== undefined && second !== undefined && overlaps(first, second);
}
