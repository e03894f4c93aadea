/** Two clusters, home and foreign, and an agent on this machine; no peering. */
import { agentImageName as IMAGE } from '../../../../lab/images-agent.ts';
import { ROOT } from './blocks.ts';
import { block, given, type Reading, until } from './reading.ts';

/** The lab of these tests, instead of the one that people work with. */
const LAB = {
  'make lab-up': 'npm run --silent lab -- up --name documents',
  'kubeconfig home)': 'kubeconfig home --name documents)',
  'kubeconfig foreign)': 'kubeconfig foreign --name documents)',
  'tl-lab': 'tl-documents',
};
const READY = until('kubectl get nodes', /^foreign +Ready /m);
const REFUSED = `kubectl patch virtualnode foreign --type merge -p '{"spec":{"resources":{"cpu":"8"}}}'
kubectl -n shop apply -f - <<END
apiVersion: v1
kind: List
items:
${[
  ['host-network', 'hostNetwork: true', '{name: main, image: "lab.local/busybox:1"}'],
  ['no-config', '', '{name: main, image: "lab.local/busybox:1", envFrom: [{configMapRef: {name: none}}]}'],
  [
    'over-quota',
    '',
    '{name: main, image: "lab.local/busybox:1", resources: {requests: {cpu: "3", memory: 16Mi}, limits: {memory: 16Mi}}}',
  ],
]
  .map(
    ([name, more, container]) => `- apiVersion: v1
  kind: Pod
  metadata: {name: ${name}}
  spec:
    ${more}
    nodeSelector: {tributary.dev/virtual-node: foreign}
    tolerations: [{key: tributary.dev/virtual-node, operator: Exists}]
    containers: [${container}]`,
  )
  .join('\n')}
END`;

export const BY_HAND: readonly Reading[] = [
  {
    document: 'docs/by-hand.md',
    folder: ROOT,
    replace: LAB,
    acts: [
      block('make lab-up'),
      block('tributary tenant'),
      block('kubectl --context foreign annotate'),
      block('tributary manifests crds'),
      block('tributary run peer', { blocking: { 'tributary run peer': /./ }, stay: true }),
      READY,
      block('kubectl get nodes,virtualnodes'),
      block("kubectl apply -f - <<'YAML'\napiVersion: apps/v1", { prints: /^hello-\S+ .* foreign /m }),
    ],
  },
  {
    document: 'docs/kubectl.md',
    acts: [
      given(`tributary manifests cluster --image ${IMAGE} | kubectl apply -f -`),
      given(
        `tributary manifests peer --virtual-node foreign --namespaces shop --image ${IMAGE} | kubectl apply -f -`,
      ),
      given('kubectl -n tributary-system rollout status deployment/tributary-peer-foreign'),
      READY,
      given(REFUSED),
      until('kubectl -n shop get pods', /^host-network .* Forbidden [^]*^over-quota .* ExceededQuota /m),
      block('$ kubectl -n shop get pods'),
      given('kubectl -n shop delete pods host-network no-config over-quota'),
    ],
  },
  {
    document: 'docs/sharing.md',
    part: 'a tenant by hand',
    acts: [block('tributary tenant')],
  },
  {
    document: 'docs/troubleshooting.md',
    part: 'by hand',
    acts: [
      block('tributary tenant-kubeconfig', { prints: /replaced/ }),
      READY,
      given('kubectl drain foreign --ignore-daemonsets --delete-emptydir-data --timeout 60s'),
      block('kubectl delete virtualnode foreign'),
      until('kubectl get nodes', /^(?![^]*^foreign )/m),
    ],
  },
];
