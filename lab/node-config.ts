/** The configuration files of a node, as text. */
import { HARDENED_HANDLER } from './hardened-runtime.ts';
import type { ClusterSpec, NodeSpec } from './spec.ts';
import { dnsAddress } from './network.ts';

export interface NodeFiles {
  readonly containerdSocket: string;
  readonly containerdRoot: string;
  /** Folder of `_default/hosts.toml`, which names the registry of the node. */
  readonly registries: string;
  readonly cniConfigDirectory: string;
  readonly cniTemplate: string;
  readonly cniBinDirectory: string;
  readonly resolvConf: string;
  readonly clientCa: string;
  readonly servingCert: string;
  readonly servingKey: string;
  readonly proxyKubeconfig: string;
  /** Base specification of the hardened handler; absent where the cluster has none. */
  readonly hardenedSpec?: string | undefined;
}

/** Room for the overhead of a tunnel between clusters. */
const POD_MTU = 1420;

export function containerdToml(files: NodeFiles, snapshotter: string): string {
  const text = JSON.stringify;
  return `version = 2
root = ${text(files.containerdRoot)}
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = ${text(files.containerdSocket)}
[plugins."io.containerd.internal.v1.opt"]
  path = ${text(`${files.containerdRoot}/opt`)}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "lab.local/pause:1"
  disable_apparmor = true
  # Root without CAP_SYS_RESOURCE may not lower a score, and every sandbox would fail on it.
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  disable_hugetlb_controller = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = ${text(files.registries)}
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = ${text(files.cniBinDirectory)}
    conf_dir = ${text(files.cniConfigDirectory)}
    # containerd writes the network's configuration from it as soon as the node has a pod range: no CNI DaemonSet.
    conf_template = ${text(files.cniTemplate)}
    max_conf_num = 1
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = ${text(snapshotter)}
    default_runtime_name = "runc"
${runtime('runc')}${files.hardenedSpec === undefined ? '' : runtime(HARDENED_HANDLER, files.hardenedSpec)}`;
}

/** A handler: all of them are runc. */
function runtime(name: string, baseSpec?: string): string {
  const section = `plugins."io.containerd.grpc.v1.cri".containerd.runtimes.${name}`;
  const base = baseSpec === undefined ? '' : `      base_runtime_spec = ${JSON.stringify(baseSpec)}\n`;
  return `    [${section}]
      runtime_type = "io.containerd.runc.v2"
${base}      [${section}.options]
        SystemdCgroup = false
`;
}

/** containerd's template (Go's text/template) of a CNI configuration. */
export function cniTemplate(node: NodeSpec): string {
  const ranges = '{{range $i, $range := .PodCIDRRanges}}{{if $i}}, {{end}}[{"subnet": "{{$range}}"}]{{end}}';
  return `{
  "cniVersion": "0.4.0",
  "name": "${node.netns}",
  "plugins": [
    {
      "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
      "mtu": ${POD_MTU},
      "ipam": {
        "type": "host-local",
        "ranges": [${ranges}],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}, "snat": true}
  ]
}
`;
}

/** JSON; every program that reads these files accepts it as YAML. */
export function kubeletConfig(cluster: ClusterSpec, node: NodeSpec, files: NodeFiles): string {
  return json({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    failCgroupV1: false,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${node.netns}`,
    cgroupsPerQOS: true,
    enforceNodeAllocatable: ['pods'],
    containerRuntimeEndpoint: `unix://${files.containerdSocket}`,
    resolvConf: files.resolvConf,
    clusterDNS: [dnsAddress(cluster.serviceCidr)],
    clusterDomain: 'cluster.local',
    address: '0.0.0.0',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true, cacheTTL: '2m0s' },
      x509: { clientCAFile: files.clientCa },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: files.servingCert,
    tlsPrivateKeyFile: files.servingKey,
    failSwapOn: false,
    imageGCHighThresholdPercent: 100,
    evictionHard: {
      'memory.available': '100Mi',
      'nodefs.available': '1%',
      'imagefs.available': '1%',
      'nodefs.inodesFree': '1%',
    },
    kubeReserved: { cpu: '50m', memory: '64Mi' },
    nodeStatusUpdateFrequency: '5s',
    // If it is not set, a kubelet writes the status of its node every 5 s although nothing has changed.
    nodeStatusReportFrequency: '5m',
    nodeLeaseDurationSeconds: 40,
    syncFrequency: '30s',
    fileCheckFrequency: '0s',
    maxPods: 110,
    serializeImagePulls: false,
    // A test or measurement that writes much reads all of it: what is rotated away is not in `kubectl logs`.
    containerLogMaxSize: '256Mi',
    makeIPTablesUtilChains: false,
  });
}

export function proxyConfig(cluster: ClusterSpec, node: NodeSpec, files: NodeFiles): string {
  return json({
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'nftables',
    clusterCIDR: cluster.podCidr,
    hostnameOverride: node.name,
    clientConnection: { kubeconfig: files.proxyKubeconfig },
    // nf_conntrack_max can be written in the first network namespace only.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    healthzBindAddress: '127.0.0.1:10256',
    metricsBindAddress: '127.0.0.1:10249',
  });
}

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
