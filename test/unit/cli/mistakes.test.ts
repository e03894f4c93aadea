import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { foreignClusters } from '../../../src/api/foreign-cluster.ts';
import { configMaps, namespaces } from '../../../src/api/resources.ts';
import { runCli, PROGRAM } from '../../../src/cli/cli.ts';
import type { CommandSpec } from '../../../src/cli/command.ts';
import { CliWorld, type Outcome } from './support/cli-world.ts';

/** What people get wrong, and all that they are then told: exit code, and standard error without the line `see: ...`. */
type Mistake = readonly [line: string, code: number, complaint: string];

const MILAN = 'milan'.padEnd(26, 'a');
const DURATION = 'is not a duration from 1s to 3650d, such as 60s or 1h';
const NO_DNS_NAME = 'is not a DNS name: lower-case letters, digits and dashes, no dash at an end';
const NO_SUBDOMAIN = 'is not a DNS name: lower-case letters, digits and dashes or dots, no dash at an end';
const NO_LABEL =
  'is not a DNS label, such as rome-2: at most 63 lower-case letters, digits and dashes, no dash at an end';
const NOBODY = 'no ForeignCluster has the name or ClusterID "nobody"; see: tributary peerings';
const NOBODY_ASKS =
  '"nobody" neither asks to run pods here nor has made an offer; who does: kubectl get peeringrequests,advertisements';

/** A mistake in the line itself: no cluster is asked. */
const IN_THE_LINE: readonly Mistake[] = [
  ['install a b', 2, 'unexpected argument "b"'],
  [
    'install rome --cluster-name milan',
    2,
    'the cluster has two names here, CLUSTER_NAME "rome" and --cluster-name "milan": give one',
  ],
  ['install --log-level loud', 2, '--log-level must be one of debug, info, warn, error, not "loud"'],
  ['install --network maybe', 2, '--network must be one of true, false, not "maybe"'],
  ['install --values /no/such.yaml', 2, 'there is no file /no/such.yaml (--values)'],
  ['install --gateway-replicas 0', 2, '--gateway-replicas: 0 is no number from 1 to 16'],
  [
    'install --image Not*An*Image',
    2,
    '--image: "Not*An*Image" is not the name of an image, such as registry.example.org/tributary:1',
  ],
  ['install --advertise 192.0.2.1', 2, '--advertise: "192.0.2.1" is not of the form HOST:PORT'],
  ['install --pod-cidrs 10.0.0.0', 2, '--pod-cidrs: "10.0.0.0" is not of the form ADDRESS/BITS'],
  [
    'install --pod-cidrs 10.0.0.0/99',
    2,
    '--pod-cidrs: "10.0.0.0/99" is not a CIDR: the prefix length is not a number from 0 to 32',
  ],
  ['install Rome!', 2, `CLUSTER_NAME: "Rome!" ${NO_LABEL}`],
  ['install --cluster-name Rome', 2, `--cluster-name: "Rome" ${NO_LABEL}`],
  ['install --api-server 192.0.2.1', 2, '--api-server: "192.0.2.1" is not of the form https://HOST[:PORT]'],
  ['upgrade --imag x', 2, 'unknown option "--imag"; did you mean --image?'],
  ['uninstall --drain-timeout 5', 2, `--drain-timeout: "5" ${DURATION}`],
  ['status rome', 2, 'unexpected argument "rome"'],
  ['status -o xml', 2, '--output must be one of json, yaml, wide, not "xml"'],
  ['discover -o table', 2, '--output must be one of json, yaml, wide, not "table"'],
  ['dashboard --port http', 2, '--port must be a port, not "http"'],
  ['dashboard --account ann', 2, '--account is NAMESPACE/NAME, not "ann"'],
  ['top -o wide', 2, '--output must be one of json, yaml, not "wide"'],
  ['logs --tail all', 2, '--tail must be a number of lines, not "all"'],
  ['logs --since yesterday', 2, `--since: "yesterday" ${DURATION}`],
  ['doctor a b', 2, 'unexpected argument "b"'],
  ['support-bundle a', 2, 'unexpected argument "a"'],
  ['support-bundle --file package.json', 2, '--file: package.json is there already; name another one'],
  ['support-bundle --file /no/such/x.tar.gz', 2, '--file: there is no folder /no/such'],
  ['peer', 2, 'ENDPOINT is missing, or --to-context'],
  ['peer h:1 --to-context milan', 2, 'give either ENDPOINT or --to-context'],
  [
    'peer h:1',
    2,
    'without --id or --token a person has to confirm who answers, and there is no terminal: add one of them',
  ],
  ['peer h:1 --id short', 2, '--id "short" is not a ClusterID; its owner reads it over there: tributary id'],
  [`peer h:99999999 --id ${MILAN}`, 2, 'ENDPOINT "h:99999999" is not of the form HOST:PORT'],
  [
    'peer h:1 --token half',
    2,
    'the join token is not of the form <clusterID>.<name>.<secret>; copy all of what `tributary token create` printed',
  ],
  ['peer h:1 --token -', 2, '--token - reads the token from standard input, which is empty'],
  ['peer h:1 --share 20', 2, '--share is for --to-context only'],
  ['peer --to-context milan --share 101', 2, '--share must be from 1 to 100 percent, not "101"'],
  ['peer --to-context milan --id x', 2, '--id is not for --to-context'],
  [`peer h:1 --id ${MILAN} --name Not_One`, 2, `--name "Not_One" ${NO_SUBDOMAIN}`],
  [`peer h:1 --id ${MILAN} --namespaces Shop`, 2, `--namespaces "Shop" ${NO_DNS_NAME}`],
  [`peer h:1 --id ${MILAN} --timeout soon`, 2, `--timeout: "soon" ${DURATION}`],
  ['unpeer', 2, 'NAME|CLUSTER_ID is missing'],
  ['unpeer milan --timeout 1', 2, `--timeout: "1" ${DURATION}`],
  ['peerings milan', 2, 'unexpected argument "milan"'],
  ['id -o wide', 2, '--output must be one of json, yaml, not "wide"'],
  ['token', 2, 'say which: create, list, delete'],
  ['token create --ttl 0s', 2, `--ttl: "0s" ${DURATION}`],
  ['token list --all', 2, 'unknown option "--all"'],
  ['token delete', 2, 'NAME is missing'],
  ['network-key create --name My_Key', 2, `name "My_Key" ${NO_SUBDOMAIN}`],
  ['approve', 2, 'CLUSTER is missing'],
  ['approve pod milan', 2, '"pod" is neither peeringrequest nor advertisement'],
  ['deny', 2, 'CLUSTER is missing'],
  ['renew', 2, 'NAME|CLUSTER_ID is missing'],
  ['policy share', 2, 'NAME is missing'],
  ['policy share Open --anyone', 2, `NAME "Open" ${NO_SUBDOMAIN}`],
  ['policy share open --percent 120', 2, '--percent must be a whole number from 0 to 100, not "120"'],
  ['policy share open --anyone --cpu lots', 2, '--cpu: not a quantity: "lots"'],
  [
    'policy share open --anyone --found-by luck',
    2,
    '--found-by must be some of LAN, WAN, Manual, Incoming, not "luck"',
  ],
  ['policy accept open --shape round', 2, '--shape must be one of Aggregate, PerNode, not "round"'],
  ['policy list --anyone', 2, 'unknown option "--anyone"'],
  ['policy delete', 2, 'NAME is missing'],
  ['offload', 2, 'NAMESPACE is missing'],
  ['offload Shop', 2, `NAMESPACE "Shop" ${NO_DNS_NAME}`],
  ['offload shop --strategy away', 2, '--strategy must be one of Local, LocalAndRemote, Remote, not "away"'],
  [
    'offload kube-system',
    2,
    'namespace kube-system holds parts of the cluster itself (kube-*, tributary-*) and never leaves it',
  ],
  ['unoffload', 2, 'NAMESPACE is missing'],
  ['tether', 2, 'CLUSTER is missing'],
  [
    'tether milan --lost-after 1s',
    2,
    '--lost-after: "1s" is not a duration from 10s to 7d, such as 60s or 1h',
  ],
  ['untether milan', 2, 'unexpected argument "milan"'],
  ['manifests', 2, 'say which: crds, cluster, gateway, node, clean-up, peer'],
  ['manifests gateway', 2, '--image is required'],
  ['tenant --namespace x', 2, '--peer is required'],
  ['tenant-kubeconfig', 2, '--peer is required'],
  ['clean-up now', 2, 'unexpected argument "now"'],
  ['version --short', 2, 'unknown option "--short"'],
  ['completion', 2, 'SHELL is missing'],
  ['completion csh', 2, 'SHELL must be one of bash, zsh, fish, not "csh"'],
  ['run', 2, 'say which: cluster, gateway, node, peer, peers, all'],
  ['run clustr', 2, 'unknown command "clustr"; did you mean cluster?'],
  ['run cluster now', 2, 'unexpected argument "now"'],
  ['run cluster --pod-cidrs 10.0.0.0/8', 2, 'unknown option "--pod-cidrs"; did you mean --pod-cidr?'],
  ['run cluster --cluster-name', 2, '--cluster-name needs a value'],
  ['run cluster --advertise --dashboard on', 2, '--advertise needs a value; "--dashboard" follows it'],
];

const NO_SERVER =
  'no API server is known: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, as they are in a pod. ' +
  'Outside of pods, name one: --kubeconfig FILE';

/** What the roles themselves find: options, then what their environment says. No `see: ...` follows: pods cannot read it. */
const OF_ROLES: readonly (readonly [
  role: string,
  options: string,
  complaint: string,
  env?: Readonly<Record<string, string>>,
])[] = [
  ['cluster', '', NO_SERVER],
  ['cluster', '--cluster-name Rome_2', `--cluster-name: "Rome_2" ${NO_LABEL}`],
  [
    'cluster',
    '',
    `$TRIBUTARY_CLUSTER_NAME: "Rome City!" ${NO_LABEL}`,
    { TRIBUTARY_CLUSTER_NAME: 'Rome City!' },
  ],
  [
    'cluster',
    '',
    '$TRIBUTARY_LOG_LEVEL must be one of debug, info, warn, error, not "loud"',
    { TRIBUTARY_LOG_LEVEL: 'loud' },
  ],
  ['cluster', '--agents one', '--agents must be one of perPeer, shared, not "one"'],
  ['peers', '', 'say where the API server reaches this agent: --node-address or $POD_IP'],
  ['cluster', '--log-level loud', '--log-level must be one of debug, info, warn, error, not "loud"'],
  [
    'cluster',
    '',
    'there is no kubeconfig /no/such (--kubeconfig, or $KUBECONFIG)',
    { KUBECONFIG: '/no/such' },
  ],
  ['cluster', '--kubeconfig package.json', 'kubeconfig: no context given and no current-context set'],
  ['cluster', '--kubeconfig package.json --context rome', 'kubeconfig: context "rome" is not in the file'],
  [
    'cluster',
    '--pod-cidr 10.0.0.0/99',
    '--pod-cidr: "10.0.0.0/99" is not a CIDR: the prefix length is not a number from 0 to 32',
  ],
  ['cluster', '--dashboard yes', '--dashboard must be on or off, not "yes"'],
  ['cluster', '--peering-port http', '--peering-port must be a port, not "http"'],
  [
    'cluster',
    '--credential-seconds 5',
    '--credential-seconds must be a number of seconds from 600 to a year, not "5"',
  ],
  [
    'cluster',
    '--offload-strategy Remote',
    '--offload-strategy needs --offload-namespaces: it says where pods of those namespaces may run',
  ],
  [
    'cluster',
    '--ops-port x --dashboard maybe',
    '--ops-port must be a port, not "x"; --dashboard must be on or off, not "maybe"',
  ],
  ['gateway', '--node-name rome-1', NO_SERVER],
  ['gateway', '--tunnel-endpoint vpn', '--tunnel-endpoint: not HOST:PORT or [IPv6]:PORT: "vpn"'],
  ['gateway', '--lease-seconds 0', '--lease-seconds must be a number of seconds from 1 to a year, not "0"'],
  ['node', '', NO_SERVER],
  ['node', '--tunnel-mtu 12', '--tunnel-mtu must be from 1280 to 9000 bytes, not "12"'],
  ['peer', '', 'name the VirtualNode to serve: --virtual-node NAME'],
  ['peer', '--virtual-node milan', 'say where the API server reaches this agent: --node-address or $POD_IP'],
  ['peer', '--virtual-node milan', NO_SERVER, { POD_IP: '10.0.0.1' }],
  ['peer', '--tls-cert-file x', '--tls-cert-file and --tls-private-key-file go together'],
  ['all', '--network maybe', '--network must be on or off, not "maybe"'],
  ['all', '', NO_SERVER],
];

/** A mistake that the cluster shows. */
const IN_THE_CLUSTER: readonly Mistake[] = [
  ['install', 2, 'name the image, with --image: none is published yet; make image builds one'],
  [
    'upgrade',
    1,
    'there is nothing to upgrade: this cluster has no installation that tributary install has made. To make one: tributary install',
  ],
  ['uninstall', 2, 'there is no terminal to ask on, so nothing was changed; a script has to add --yes'],
  [
    'dashboard',
    1,
    'there is no Deployment tributary-system/tributary-cluster: is Tributary installed in this cluster?',
  ],
  ['logs', 1, 'no pod of Tributary is in this cluster; a role that runs on a host writes its logs there'],
  ['unpeer nobody', 1, NOBODY],
  ['renew nobody', 1, NOBODY],
  ['tether nobody', 1, NOBODY],
  ['approve nobody', 1, NOBODY_ASKS],
  ['deny nobody', 1, NOBODY_ASKS],
  ['token delete nobody', 1, 'there is no token "nobody"; see: tributary token list'],
  ['policy share open', 2, 'say whom it is about: --peers, --network-key or --anyone'],
  ['policy accept open', 2, 'say whom it is about: --peers, --network-key or --anyone'],
  ['policy delete nobody --kind share', 1, 'there is no SharingPolicy "nobody"; see: tributary policy list'],
  ['policy delete nobody', 1, 'there is no policy "nobody"; see: tributary policy list'],
  ['offload nowhere', 1, 'there is no namespace "nowhere"; make it with: kubectl create namespace nowhere'],
  ['unoffload nowhere', 1, 'there is no namespace "nowhere"; see: kubectl get namespaces'],
  [
    'offload default',
    1,
    'there is no virtual node, so no foreign cluster would take pods; peer with one first: tributary peer --help',
  ],
];

/** Its help names it `manifests cluster`; not those that people do not call. */
function commandsOf(spec: CommandSpec, words: readonly string[] = []): string[] {
  if (spec.children === undefined) return spec.isHidden === true ? [] : [words.join(' ')];
  return spec.children.flatMap(({ spec: child }) => commandsOf(child, [...words, child.name]));
}

const withoutHelp = (text: string): string => text.replace(/see: tributary [a-z -]*--help\n$/, '').trimEnd();

describe('a mistake in the line', () => {
  test.each(IN_THE_LINE)('tributary %s', async (line, code, complaint) => {
    let [out, err] = ['', ''];
    const io = { out: (text: string) => void (out += text), err: (text: string) => void (err += text) };
    const found = await runCli(line.split(' '), io, new AbortController().signal);
    expect([found, out, withoutHelp(err)]).toEqual([code, '', complaint]);
  });

  test('no command is left out', () => {
    const lines = [...IN_THE_LINE, ...IN_THE_CLUSTER].map(([line]) => line);
    const none = commandsOf(PROGRAM).filter((name) => {
      const [first = ''] = name.split(' ');
      const isGroup = ['manifests', 'run'].includes(first);
      return !lines.some(
        (line) =>
          line === name || line.startsWith(`${isGroup ? first : name} `) || (isGroup && line === first),
      );
    });
    expect(none).toEqual(['kernel-wireguard']);
  });
});

describe('a mistake in what a role is told', () => {
  const NAMES = [
    'KUBECONFIG',
    'TRIBUTARY_CLUSTER_NAME',
    'TRIBUTARY_LOG_LEVEL',
    'POD_IP',
    'KUBERNETES_SERVICE_HOST',
  ];
  // oxlint-disable-next-line node/no-process-env
  const { env } = process;
  let before: Record<string, string | undefined>;
  beforeEach(() => {
    before = Object.fromEntries(NAMES.map((name) => [name, env[name]]));
    for (const name of NAMES) delete env[name];
  });
  afterEach(() => {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete env[name];
      else env[name] = value;
    }
  });

  test.each(OF_ROLES)('tributary run %s %s: %s', async (role, options, complaint, further = {}) => {
    Object.assign(env, further);
    let err = '';
    const io = { out: () => {}, err: (text: string) => void (err += text) };
    const words = ['run', role, ...options.split(' ').filter((word) => word !== '')];
    const code = await runCli(words, io, new AbortController().signal);
    expect([code, err]).toEqual([2, `tributary run ${role}: ${complaint}\n`]);
  });

  test('no role is left out', () => {
    const roles = PROGRAM.children?.find(({ spec }) => spec.name === 'run')?.spec.children ?? [];
    expect(roles.map(({ spec }) => spec.name).toSorted()).toEqual(
      [...new Set(OF_ROLES.map(([role]) => role))].toSorted(),
    );
  });
});

describe('a mistake that the cluster shows', () => {
  let world: CliWorld;
  beforeEach(() => {
    world = CliWorld.start();
    world.seed(namespaces, { metadata: { name: 'default' } });
    world.seedOwn('home'.padEnd(26, 'c'), configMaps);
    world.seed(foreignClusters, {
      metadata: { name: 'milan' },
      spec: { clusterID: MILAN, outgoing: 'Auto', incoming: 'Auto' },
    });
  });
  afterEach(async () => world.stop());

  test.each(IN_THE_CLUSTER)('tributary %s', async (line, code, complaint) => {
    const { code: found, err } = await call(world, line);
    expect([found, withoutHelp(err)]).toEqual([code, complaint]);
  });
});

/** Calls the command that the words lead to. */
async function call(world: CliWorld, line: string): Promise<Outcome> {
  const words = line.split(' ');
  let { children = [] } = PROGRAM;
  let found = children.find(({ spec }) => spec.name === words[0]);
  while (found !== undefined) {
    words.shift();
    ({ children = [] } = found.spec);
    const below = children.find(({ spec }) => spec.name === words[0]);
    if (below === undefined) return world.run(found, words.join(' '));
    found = below;
  }
  throw new Error(`no such command: ${line}`);
}
