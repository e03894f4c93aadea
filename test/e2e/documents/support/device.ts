/** A laptop that only dials, and a company; the company has Tributary at the beginning. */
import { block, given, type Reading, until } from './reading.ts';
import { endpointOf, idOf } from './two-cities.ts';

const TETHERED = until(
  'kubectl --context laptop get clustermodes',
  /^cluster +Tethered +Tethered +company /m,
);
const AUTONOMOUS = until('kubectl --context laptop get clustermodes', /^cluster +Autonomous +Autonomous /m);

export const DEVICE: readonly Reading[] = [
  {
    document: 'docs/tethering.md',
    context: 'laptop',
    acts: [
      given('tributary install company --yes --image lab.local/tributary:1', 'company'),
      block('tributary install laptop', { answer: 'y' }),
      block('$ kubectl apply -f - <<END\napiVersion: tributary.dev/v1alpha1\nkind: SharingPolicy', {
        context: 'company',
      }),
      block('$ tributary id', { context: 'company', replace: { 'company.example:30743': '...' } }),
      block('$ kubectl apply -f - <<END\napiVersion: tributary.dev/v1alpha1\nkind: ForeignCluster', {
        stdin: 'tributary --context company token create',
        replace: {
          'company.example:30743': endpointOf('company'),
          zg4vgrcx2qpvdqbr4hd6tm63n3: idOf('company'),
        },
      }),
      block('$ kubectl get clustermodes'),
      block('$ kubectl patch clustermode'),
      block('$ kubectl --as=admin', { prints: /labeled/ }),
      TETHERED,
    ],
  },
  {
    document: 'docs/troubleshooting.md',
    part: 'a tether',
    context: 'laptop',
    acts: [
      block('kubectl get clustermodes', { prints: /Tethered/ }),
      block('kubectl -n tributary-system get pods'),
      given('kubectl -n tributary-system rollout status deployment/tributary-cluster'),
      given('kubectl -n tributary-system scale deployment/tributary-cluster --replicas 0'),
      block('kubectl delete clustermode cluster'),
      given('kubectl -n tributary-system scale deployment/tributary-cluster --replicas 1'),
      AUTONOMOUS,
      given('tributary unpeer company'),
      given('kubectl delete foreigncluster company'),
      given('kubectl delete sharingpolicies --all; kubectl delete foreignclusters --all', 'company'),
      given('tributary token delete laptop', 'company'),
    ],
  },
  {
    document: 'examples/laptop/README.md',
    acts: [
      block('kubectl --context company apply -k'),
      given(
        [
          `sed -i "s/mfrggzdfmztwq2lknnwg23tpob/${idOf('company')}/`,
          `s/company.example.com:30743/${endpointOf('company')}/" examples/laptop/company.yaml`,
        ].join(';'),
      ),
      block('tributary --context company token create', {
        blocking: { 'kubectl --context laptop get clustermodes': /^cluster +Tethered +Tethered +company /m },
      }),
      until('kubectl --context company get nodes', /^laptop +Ready /m),
      block('kubectl --context laptop -n notes', { prints: /^laptop +Ready/m }),
      until('kubectl --context company -n field get pods -o wide', /^sensor-\S+ +1\/1 +Running .* laptop /m),
      until('kubectl --context laptop -n notes get pods -o wide', /^web-\S+ +1\/1 +Running .* company /m),
      block('tributary --context laptop untether'),
      AUTONOMOUS,
    ],
  },
  {
    document: 'docs/install.md',
    part: 'one process',
    context: 'laptop',
    acts: [
      block('tributary install rome --image IMAGE --one-process', {
        answer: 'y',
        replace: { 'install rome': 'install laptop' },
        prints: /one for all roles[^]*Installed/,
      }),
      until(
        'kubectl get pods -A -l app.kubernetes.io/name=tributary --no-headers',
        /^tributary-system .* 2\/2 .*\n$/,
      ),
      given('tributary peer --to-context company --timeout 90s'),
      until('kubectl get tunnels', / True /),
      until('kubectl get pods -n tributary-agents 2>&1', /No resources/),
      block('tributary upgrade --one-process', { answer: 'y', prints: /Upgraded/ }),
      until('kubectl -n tributary-agents get pods --no-headers', / 1\/1 /),
      until('kubectl get nodes', /^company +Ready /m),
    ],
  },
];
