/** What an installer can find out about a cluster by itself. */
import {
  configMaps,
  daemonSets,
  deployments,
  nodes,
  selfSubjectAccessReviews,
  serviceCidrs,
  services,
} from '../../api/resources.ts';
import { LABEL_NODE_TYPE } from '../../api/names.ts';
import { type Manifest, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import type { ConfigMap, Node } from '../../api/wire.ts';
import { OPERATOR_API } from '../../deploy/monitoring/monitoring.ts';
import { typeOf } from '../../kube/apply.ts';
import { readText } from '../../kube/read-text.ts';
import { ignoring } from '../../lib/errors.ts';
import { ifMissing, listed } from './objects.ts';
import { gatewaysWithoutWireGuard } from './wireguard.ts';
import type { InstallSession } from './waiting.ts';

/** A list, and where it is from; empty where nobody tells. */
export interface Ranges {
  readonly cidrs: readonly string[];
  readonly source: string;
}

export interface ClusterFacts {
  /** As in v1.36.3. */
  readonly version: string;
  /** Real ones, with their internal addresses. */
  readonly nodes: readonly { readonly name: string; readonly addresses: readonly string[] }[];
  readonly pods: Ranges;
  readonly services: Ranges;
  /** `flannel`; empty where it is none of those that are known. */
  readonly cni: string;
  readonly usedNodePorts: readonly number[];
  /** What the caller may not do, of what is to be done. */
  readonly forbidden: readonly string[];
  /** Nodes whose gateway has found that their kernel has no WireGuard; none where no gateway has asked. */
  readonly withoutWireGuard: readonly string[];
  /** Kinds of the Prometheus operator that are to be made and that the API server does not serve. */
  readonly unserved: readonly string[];
}

/** By a part of the name of its DaemonSet. */
const CNIS = [
  'cilium',
  'calico',
  'canal',
  'flannel',
  'kindnet',
  'weave',
  'antrea',
  'kube-router',
  'ovn',
  'aws-node',
];

export async function factsOf(session: InstallSession, objects: readonly Manifest[]): Promise<ClusterFacts> {
  const [version, realNodes, ports, cni, forbidden, unserved, kubeadm, withoutWireGuard] = await Promise.all([
    versionOf(session),
    readNodes(session),
    nodePorts(session),
    cniOf(session),
    forbiddenFor(session, objects),
    unservedOf(session, objects),
    kubeadmOf(session),
    gatewaysWithoutWireGuard(session),
  ]);
  return {
    version,
    nodes: realNodes.map((node) => ({ name: node.metadata.name, addresses: addressesOf(node) })),
    pods: await podRanges(session, { realNodes, kubeadm }),
    services: await serviceRanges(session, kubeadm),
    cni,
    usedNodePorts: ports,
    forbidden,
    unserved,
    withoutWireGuard,
  };
}

async function versionOf({ client, signal }: InstallSession): Promise<string> {
  const text = await readText(client, '/version', { signal });
  return (JSON.parse(text) as { gitVersion?: string }).gitVersion ?? '';
}

const readNodes = async (session: InstallSession): Promise<Node[]> =>
  listed(session, nodes, { labelSelector: `!${LABEL_NODE_TYPE}` });

const addressesOf = ({ status }: Node): string[] =>
  (status?.addresses ?? []).filter(({ type }) => type === 'InternalIP').map(({ address }) => address);

/** Of others: ours may stay what it is. */
async function nodePorts(session: InstallSession): Promise<number[]> {
  const others = (await listed(session, services)).filter(
    ({ metadata }) => metadata.namespace !== SYSTEM_NAMESPACE,
  );
  return others.flatMap(({ spec }) =>
    (spec?.ports ?? []).flatMap(({ nodePort }) => (nodePort === undefined ? [] : [nodePort])),
  );
}

async function cniOf(session: InstallSession): Promise<string> {
  const sets = await listed(session, daemonSets);
  const names = [...sets, ...(await listed(session, deployments, { namespace: 'kube-system' }))].map(
    ({ metadata }) => metadata.name,
  );
  return CNIS.find((cni) => names.some((name) => name.includes(cni))) ?? '';
}

/** What kubeadm was told when it made the cluster. */
type Kubeadm = Readonly<Partial<Record<'podSubnet' | 'serviceSubnet', string>>>;

async function kubeadmOf(session: InstallSession): Promise<Kubeadm> {
  const map = await readMap(session, 'kube-system', 'kubeadm-config');
  const text = map?.data?.['ClusterConfiguration'] ?? '';
  const lineOf = (key: string): string | undefined =>
    new RegExp(`^\\s+${key}:\\s*"?([0-9a-fA-F.:/,]+)"?\\s*$`, 'm').exec(text)?.[1];
  const [podSubnet, serviceSubnet] = [lineOf('podSubnet'), lineOf('serviceSubnet')];
  return { ...(podSubnet && { podSubnet }), ...(serviceSubnet && { serviceSubnet }) };
}

const readMap = async (
  session: InstallSession,
  namespace: string,
  name: string,
): Promise<ConfigMap | undefined> =>
  session.client
    .get(configMaps, { namespace, name }, { signal: session.signal })
    .catch(ignoring('NotFound', 'Forbidden'));

async function podRanges(
  session: InstallSession,
  { realNodes, kubeadm }: { realNodes: readonly Node[]; kubeadm: Kubeadm },
): Promise<Ranges> {
  if (kubeadm.podSubnet !== undefined) {
    return { cidrs: kubeadm.podSubnet.split(','), source: 'ConfigMap kube-system/kubeadm-config' };
  }
  const flannel = await readMap(session, 'kube-flannel', 'kube-flannel-cfg');
  const network = /"Network":\s*"([^"]+)"/.exec(flannel?.data?.['net-conf.json'] ?? '')?.[1];
  if (network !== undefined) return { cidrs: [network], source: 'ConfigMap kube-flannel/kube-flannel-cfg' };
  const cilium = (await readMap(session, 'kube-system', 'cilium-config'))?.data?.['cluster-pool-ipv4-cidr'];
  if (cilium !== undefined) {
    return { cidrs: cilium.split(/[ ,]+/), source: 'ConfigMap kube-system/cilium-config' };
  }
  const ofNodes = realNodes.flatMap(
    ({ spec }) => spec?.podCIDRs ?? (spec?.podCIDR === undefined ? [] : [spec.podCIDR]),
  );
  return { cidrs: [...new Set(ofNodes)].toSorted(), source: 'the nodes, one by one' };
}

async function serviceRanges(session: InstallSession, kubeadm: Kubeadm): Promise<Ranges> {
  const objects = await listed(session, serviceCidrs);
  const cidrs = objects.flatMap(({ spec }) => spec?.cidrs ?? []);
  if (cidrs.length > 0) return { cidrs, source: 'ServiceCIDR objects' };
  return kubeadm.serviceSubnet === undefined
    ? { cidrs: [], source: '' }
    : { cidrs: kubeadm.serviceSubnet.split(','), source: 'ConfigMap kube-system/kubeadm-config' };
}

/** Everything else that is installed is a part of Kubernetes, or brought along. */
async function unservedOf(
  { client, signal }: InstallSession,
  objects: readonly Manifest[],
): Promise<string[]> {
  const kinds = objects.filter(({ apiVersion }) => apiVersion === OPERATOR_API).map(({ kind }) => kind);
  if (kinds.length === 0) return [];
  const text = await readText(client, `/apis/${OPERATOR_API}`, { signal }).catch(ifMissing);
  const { resources = [] } = JSON.parse(text ?? '{}') as { resources?: { kind: string }[] };
  const served = new Set(resources.map(({ kind }) => kind));
  return kinds.filter((kind) => !served.has(kind));
}

/** One question for each kind and namespace. Who may do everything is asked one. */
async function forbiddenFor(session: InstallSession, objects: readonly Manifest[]): Promise<string[]> {
  if (await may(session, { group: '*', resource: '*', verb: '*' })) return [];
  const asked = new Map<string, Question>();
  for (const object of objects) {
    const { group, plural } = typeOf(object);
    const { namespace } = object.metadata;
    const question = {
      group,
      resource: plural,
      verb: 'patch',
      ...(namespace !== undefined && { namespace }),
    };
    asked.set(
      `${plural}${group === '' ? '' : `.${group}`}${namespace === undefined ? '' : ` in ${namespace}`}`,
      question,
    );
  }
  const answers = await Promise.all(
    [...asked].map(async ([what, question]) => ((await may(session, question)) ? [] : [what])),
  );
  return answers.flat();
}

interface Question {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
  readonly namespace?: string;
}

async function may({ client, signal }: InstallSession, resourceAttributes: Question): Promise<boolean> {
  const review = await client.create(
    selfSubjectAccessReviews,
    {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      metadata: {},
      spec: { resourceAttributes: { ...resourceAttributes } },
    },
    { signal },
  );
  return review.status?.allowed === true;
}
