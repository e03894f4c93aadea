/** Installing again, by each of the ways, with a key from a backup; and removing everything. */
import { block, given, type Reading, until } from './reading.ts';
import { idOf, OFFLOADED, PEER } from './two-cities.ts';

const UNINSTALL = given('tributary uninstall --yes --delete-volumes');
const SAME_ID = until(`[ ${idOf('rome')} = "$(cat id)" ] && echo same`, /same/);
const NO_KINDS = until('kubectl get crd -o name | grep -c tributary.dev || true', /^0$/m);

export const REMOVAL: readonly Reading[] = [
  {
    document: 'docs/operations/backup.md',
    context: 'rome',
    acts: [
      given(`echo ${idOf('rome')} >id`),
      block('umask 077'),
      UNINSTALL,
      block('kubectl create namespace tributary-system'),
      given('tributary install rome --yes --image lab.local/tributary:1'),
      SAME_ID,
      UNINSTALL,
      given('tributary install rome --yes --image lab.local/tributary:1'),
      until(`[ ${idOf('rome')} = "$(cat id)" ] || echo another`, /another/),
      block('kubectl -n tributary-system scale deployment'),
      SAME_ID,
    ],
  },
  {
    document: 'docs/install.md',
    part: 'with tributary',
    context: 'rome',
    acts: [
      PEER,
      ...OFFLOADED,
      block('tributary uninstall  ', { answer: 'y' }),
      NO_KINDS,
      given('echo "{image: lab.local/tributary:1, clusterName: rome}" >rome.yaml'),
      block('tributary install rome --image IMAGE  ', {
        answer: 'y',
        prints: /Installed.*kind: Deployment/s,
      }),
      block('tributary upgrade --image', { answer: 'y' }),
      UNINSTALL,
    ],
  },
  {
    document: 'docs/install.md',
    part: 'with Helm',
    context: 'rome',
    acts: [
      block('helm install'),
      given('kubectl -n tributary-system rollout status deployment/tributary-cluster'),
      PEER,
      ...OFFLOADED,
      block('helm upgrade', { prints: /REVISION: 2/ }),
    ],
  },
  {
    document: 'docs/dashboard.md',
    part: 'with Helm',
    context: 'rome',
    acts: [block('helm upgrade', { prints: /REVISION: 3/ })],
  },
  {
    document: 'docs/install.md',
    part: 'removal with Helm',
    context: 'rome',
    acts: [block('tributary uninstall --prepare', { answer: 'y' }), block('helm uninstall'), NO_KINDS],
  },
  {
    document: 'docs/network.md',
    part: 'by manifests',
    context: 'rome',
    acts: [
      given('tributary manifests crds | kubectl apply --server-side -f -'),
      given(
        'tributary manifests cluster --image lab.local/tributary:1 --cluster-name rome | kubectl apply --server-side -f -',
      ),
      block('tributary manifests gateway'),
      given('kubectl -n tributary-system rollout status deployment/tributary-cluster'),
      PEER,
      ...OFFLOADED,
      until('kubectl get tunnels', / True /),
    ],
  },
  {
    document: 'docs/dashboard.md',
    part: 'by manifests',
    context: 'rome',
    acts: [
      block('tributary manifests cluster'),
      given('kubectl -n tributary-system rollout status deployment/tributary-cluster'),
    ],
  },
  {
    document: 'docs/operations/upgrade.md',
    context: 'rome',
    acts: [block('tributary manifests crds', { prints: /successfully rolled out/ })],
  },
  {
    document: 'docs/drain.md',
    part: 'the end',
    context: 'rome',
    acts: [block('kubectl label namespaces'), NO_KINDS],
  },
];
