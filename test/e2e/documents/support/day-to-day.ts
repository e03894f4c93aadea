/** What documents say to whoever runs two clusters that are peered, day after day. */
import { block, given, type Reading, until } from './reading.ts';
import { endpointOf, idOf, knownAs, OFFLOADED, PEER, SEEN, STRANGERS } from './two-cities.ts';

const READY = until('kubectl --context rome get nodes', /^milan +Ready /m);
const MIGHTY = `kubectl -n shop apply -f - <<END
apiVersion: v1
kind: Pod
metadata: {name: mighty}
spec:
  nodeSelector: {tributary.dev/virtual-node: milan}
  containers: [{name: main, image: lab.local/busybox:1, securityContext: {privileged: true}}]
END`;
/** Of the kinds of the Prometheus operator, which the lab does not have. */
const kindOf = (kind: string, plural: string): string => `kubectl apply -f - <<END
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ${plural}.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: ${kind}, plural: ${plural}, singular: ${plural.slice(0, -1)}}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
END
kubectl wait --for=condition=Established crd/${plural}.monitoring.coreos.com`;

export const DAY_TO_DAY: readonly Reading[] = [
  {
    document: 'docs/sharing.md',
    part: 'refusals',
    context: 'rome',
    replace: { 'home-shop': '...', '"guests"': '"rome"' },
    acts: [
      given(MIGHTY),
      until('kubectl -n shop get pods', /^mighty .* Forbidden /m),
      block('$ kubectl -n shop describe pod mighty'),
      given('kubectl -n shop delete pod mighty'),
    ],
  },
  {
    document: 'docs/sharing.md',
    part: 'a guest that was suspended',
    context: 'milan',
    replace: { CLUSTER_ID: idOf('rome') },
    acts: [block('kubectl annotate peeringrequest', { prints: /annotated/ })],
  },
  {
    document: 'docs/network.md',
    part: 'choices of home',
    context: 'rome',
    replace: { ID: idOf('milan') },
    acts: [
      until('kubectl get tunnels', / True /),
      block('kubectl get tunnels -o jsonpath', { prints: /: the peer is seen as itself in no range/ }),
      block('kubectl patch foreigncluster NAME --type merge -p \'{"spec":{"network":{"ownAddresses"', {
        replace: { NAME: knownAs('rome', 'milan') },
      }),
      block(
        'kubectl patch foreigncluster NAME --type merge -p \'{"spec":{"network":{"services":"OffloadedPods"}}',
        {
          replace: { NAME: knownAs('rome', 'milan') },
        },
      ),
      block(
        'kubectl patch foreigncluster NAME --type merge -p \'{"spec":{"network":{"services":"OffloadedPods","dns"',
        { replace: { 'foreigncluster NAME': `foreigncluster ${knownAs('rome', 'milan')}`, NAME: 'milan' } },
      ),
      // Their ranges overlap, and the doctor, who is asked later, would say what these two choices lack.
      given(
        `kubectl patch foreigncluster ${knownAs('rome', 'milan')} --type merge -p '{"spec":{"network":{"services":null,"dns":null}}}'`,
      ),
    ],
  },
  {
    document: 'docs/drain.md',
    part: 'drains',
    context: 'rome',
    acts: [
      given(
        `kubectl -n shop create deployment web --image lab.local/busybox:1 --replicas 4 -- sh -c 'trap exit TERM; sleep 3600 & wait'`,
      ),
      given('kubectl -n shop rollout status deployment web'),
      until('kubectl -n shop get pods -o wide', / milan /),
      block('kubectl cordon milan', { prints: /evicted/ }),
      block('kubectl taint node milan'),
      given('kubectl taint node milan node.kubernetes.io/out-of-service-'),
      block('kubectl drain milan --ignore-daemonsets --delete-emptydir-data --timeout'),
      until('kubectl uncordon milan', /uncordoned/),
      READY,
    ],
  },
  {
    document: 'docs/monitoring.md',
    context: 'rome',
    acts: [
      given(kindOf('PodMonitor', 'podmonitors')),
      given(kindOf('PrometheusRule', 'prometheusrules')),
      block('tributary upgrade', { answer: 'y' }),
      block('kubectl apply --server-side -f deploy/prometheus'),
      block('kubectl -n tributary-system patch configmap'),
    ],
  },
  {
    document: 'docs/dashboard.md',
    part: 'with tributary install',
    context: 'rome',
    replace: { NAMESPACE: 'default', ACCOUNT: 'default' },
    acts: [
      block('tributary upgrade --dashboard true', { answer: 'y' }),
      block('tributary dashboard', {
        blocking: { 'tributary dashboard': /http:\/\/127\.0\.0\.1:\d+/ },
      }),
      block('kubectl -n tributary-system port-forward', {
        blocking: { 'kubectl -n tributary-system port-forward': /Forwarding from/ },
        meanwhile: 'page http://127.0.0.1:8090 | grep "<title>"',
      }),
    ],
  },
  {
    document: 'docs/troubleshooting.md',
    part: 'a peering',
    context: 'rome',
    acts: [
      block('tributary doctor', { prints: /milan/ }),
      block('kubectl -n tributary-agents logs', { prints: /"level":/ }),
    ],
  },
  {
    document: 'docs/peering.md',
    context: 'rome',
    replace: { 'gateway.example.com:7443': endpointOf('milan') },
    acts: [
      block('kubectl get foreignclusters', { replace: { NAME: knownAs('rome', 'milan') } }),
      block('tributary unpeer NAME', { replace: { NAME: 'milan', CONTEXT: 'milan' } }),
      ...STRANGERS,
      given('tributary network-key create', 'milan'),
      block('tributary policy share friends', { context: 'milan' }),
      block('tributary token create --ttl 1h', { context: 'milan' }),
      SEEN,
      given(`tributary --context milan policy share guests --peers ${idOf('rome')} --approval Token`),
      block('tributary peer gateway', { stdin: 'tributary --context milan token create' }),
      READY,
      block('kubectl annotate peeringrequests', { context: 'milan' }),
      ...STRANGERS,
      PEER,
      ...OFFLOADED,
    ],
  },
];
