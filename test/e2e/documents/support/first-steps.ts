/** What somebody new reads first, with two clusters that do not have Tributary yet. */
import { block, given, type Reading, until } from './reading.ts';
import { endpointOf, idOf, OFFLOADED, PEER, STRANGERS } from './two-cities.ts';

const SHOP = 'kubectl --context rome -n shop';

export const FIRST_STEPS: readonly Reading[] = [
  {
    document: 'README.md',
    acts: [
      block('tributary install --context rome', {
        answer: 'y',
        prints: /^hello-\S+ +1\/1 +Running .* milan .*\s+hello-/m,
      }),
      given(`${SHOP} delete deployment hello; tributary --context rome unoffload shop`),
    ],
  },
  {
    document: 'docs/first-peering.md',
    replace: { CLUSTER_ID_OF_ROME: idOf('rome'), '203.0.113.7:30743': endpointOf('milan') },
    acts: [
      block('tributary peer --context rome --to-context milan'),
      block('tributary offload shop', { prints: /^milan +Ready /m }),
      block('tributary --context rome unpeer milan'),
      ...STRANGERS,
      block('tributary --context milan policy share rome'),
      block('tributary --context milan id'),
      block('tributary --context rome peer 203.0.113.7:30743'),
      until('kubectl --context rome get nodes', /^milan +Ready /m),
      ...STRANGERS,
      given(`tributary --context milan policy share rome --peers ${idOf('rome')} --approval Manual`),
      given(`tributary --context rome peer ${endpointOf('milan')} --id ${idOf('milan')} || [ $? = 3 ]`),
      block('tributary --context milan approve rome'),
      until('kubectl --context rome get nodes', /^milan +Ready /m),
    ],
  },
  {
    document: 'examples/web-shop/README.md',
    acts: [
      given('tributary --context rome unoffload shop; kubectl --context rome delete namespace shop'),
      ...STRANGERS,
      PEER,
      block('kubectl --context rome apply -k'),
      block('$ kubectl --context rome -n shop get pods', { only: 'header', prints: /^front-\S+ .* milan /m }),
      block('kubectl --context rome -n shop port-forward', {
        blocking: { kubectl: /Forwarding from/ },
        meanwhile: 'page http://127.0.0.1:8080/ && page http://127.0.0.1:8080/visits | grep INCR',
      }),
      block('kubectl --context rome -n shop run client', { prints: /front-/ }),
      block('tributary unoffload shop'),
      until(`${SHOP} get pods -l app=front -o wide`, /^front-\S+ +1\/1 +Running .* milan /m),
      block('kubectl --context rome delete -k'),
    ],
  },
  {
    document: 'docs/namespaces.md',
    context: 'rome',
    replace: { 'in turin, milan': 'in milan' },
    acts: [
      given('kubectl create namespace shop'),
      block('tributary offload shop'),
      block('$ kubectl -n shop get namespaceoffloading'),
      given('tributary unoffload shop'),
      block('kubectl label namespace shop'),
      until('kubectl -n shop get namespaceoffloading', /^offloading .* True /m),
      block('$ kubectl -n shop get events'),
      block('$ kubectl get advertisement'),
      block('$ kubectl -n shop delete namespaceoffloading offloading'),
      until('kubectl -n shop get namespaceoffloading --no-headers --ignore-not-found', /^$/),
      ...OFFLOADED,
    ],
  },
];
