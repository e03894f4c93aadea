import { expect, test } from '@jest/globals';

import {
  cniTemplate,
  containerdToml,
  kubeletConfig,
  proxyConfig,
  type NodeFiles,
} from '../../../lab/node-config.ts';
import { resolveSpec } from '../../../lab/spec.ts';
import { masquerade, podRoutes } from '../../../lab/underlay.ts';

const lab = resolveSpec({
  name: 'lab',
  workload: 'containers',
  clusters: [{ name: 'home', nodes: 3 }],
  underlay: { subnet: 0 },
  runDirectory: '/run/lab',
  dataDirectory: '/data',
});
const [cluster] = lab.clusters;
const [node] = cluster?.nodes ?? [];
if (!cluster || !node) throw new Error('a lab without nodes');

const files: NodeFiles = {
  containerdSocket: '/run/lab/home-1.sock',
  registries: '/data/registries',
  containerdRoot: '/data/home-1/containerd',
  cniConfigDirectory: '/data/home-1/cni',
  cniTemplate: '/data/home-1/cni-template.json',
  cniBinDirectory: '/usr/lib/cni',
  resolvConf: '/data/home-1/resolv.conf',
  clientCa: '/data/home-1/ca.crt',
  servingCert: '/data/home-1/kubelet.crt',
  servingKey: '/data/home-1/kubelet.key',
  proxyKubeconfig: '/data/home-1/kube-proxy.kubeconfig',
};

test('containerd keeps to its own paths', () => {
  const toml = containerdToml(files, 'native');
  expect(toml).toContain('root = "/data/home-1/containerd"');
  expect(toml).toContain('address = "/run/lab/home-1.sock"');
  expect(toml).toContain('snapshotter = "native"');
  expect(toml).toContain('conf_template = "/data/home-1/cni-template.json"');
  expect(toml).toContain('restrict_oom_score_adj = true');
});

test('the CNI template is JSON once its ranges are filled in', () => {
  const filled = cniTemplate(node).replace(/\{\{range.*end\}\}/, '[{"subnet": "10.244.0.0/24"}]');
  expect(JSON.parse(filled)).toMatchObject({
    name: 'tl-lab-home-1',
    plugins: [
      { type: 'bridge', ipMasq: false, ipam: { ranges: [[{ subnet: '10.244.0.0/24' }]] } },
      { type: 'portmap' },
    ],
  });
});

test('the kubelet has its own cgroup, socket and DNS', () => {
  expect(JSON.parse(kubeletConfig(cluster, node, files))).toMatchObject({
    cgroupRoot: '/tl-lab-home-1',
    containerRuntimeEndpoint: 'unix:///run/lab/home-1.sock',
    clusterDNS: ['10.96.0.10'],
    maxPods: 110,
  });
});

test('kube-proxy leaves the conntrack limits of the host alone', () => {
  expect(JSON.parse(proxyConfig(cluster, node, files))).toMatchObject({
    mode: 'nftables',
    clusterCIDR: '10.244.0.0/16',
    conntrack: { maxPerCore: 0, min: 0 },
  });
});

test('a node has routes to the pods of all others', () => {
  expect(podRoutes(cluster, node)).toEqual([
    'route add 10.244.1.0/24 via 172.30.0.12',
    'route add 10.244.2.0/24 via 172.30.0.13',
  ]);
});

test('only what leaves the cluster over the underlay is masqueraded', () => {
  expect(masquerade(cluster)).toContain(
    'oifname "eth0" ip saddr 10.244.0.0/16 ip daddr != { 10.244.0.0/16, 10.96.0.0/16 } masquerade\n',
  );
});
