/** Pods for which milan has no place, although home sees room there: its zones are occupied, and home sees no zones. */
import { until } from '../../../support/e2e/until.ts';
import { ABROAD, container, deployment, DONGLE, labels, type Stretched } from './namespaces.ts';
import type { City } from './network.ts';

const ZONE = 'topology.kubernetes.io/zone';
const OCCUPANT = 'occupant';

const apartFromOccupants = (topologyKey: string): object => ({
  podAntiAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { labelSelector: { matchLabels: labels(OCCUPANT) }, topologyKey },
    ],
  },
});

/** Devices keep turin out of it: it has none. */
const WANTS = container('sleep 3600', {
  resources: {
    requests: { cpu: '5m', memory: '8Mi', [DONGLE]: '1' },
    limits: { memory: '64Mi', [DONGLE]: '1' },
  },
});

/** Would rather be abroad, and keeps away from the zones of occupants. */
export const APART: object = {
  terminationGracePeriodSeconds: 1,
  affinity: { ...ABROAD, ...apartFromOccupants(ZONE) },
  containers: [WANTS],
};

/** Resolves when there is an occupant in each zone of milan. */
export async function occupyZones(world: Stretched, namespace: string): Promise<void> {
  const zones = { 'milan-1': 'a', 'milan-2': 'b' };
  for (const [node, zone] of Object.entries(zones)) {
    await world.ask(`kubectl --context milan label node ${node} ${ZONE}=${zone} --overwrite`);
    await addDevices(world, 'milan', node);
  }
  await addDevices(world, 'rome', 'rome-1');
  await until('milan lends four, two on each node', async () => {
    const look = String.raw`-o jsonpath='{.status.allocatable.example\.com/dongle}'`;
    return (await world.ask(`kubectl get node milan ${look}`)) === '4';
  });
  await world.apply('rome', namespace, [
    deployment(OCCUPANT, 2, {
      nodeSelector: { 'tributary.dev/virtual-node': 'milan' },
      affinity: apartFromOccupants('kubernetes.io/hostname'),
      containers: [WANTS],
    }),
  ]);
  await until(
    'both zones are occupied',
    async () => (await world.places(namespace, `app=${OCCUPANT}`)).join() === 'milan,milan',
    { seconds: 90, seen: async () => world.ask(`kubectl -n ${namespace} describe pod -l app=${OCCUPANT}`) },
  );
}

export const leaveZones = async (world: Stretched, namespace: string): Promise<unknown> =>
  world.ask(`kubectl -n ${namespace} delete deployment ${OCCUPANT}`);

async function addDevices(world: Stretched, city: City, node: string): Promise<void> {
  const patch = JSON.stringify([{ op: 'add', path: '/status/capacity/example.com~1dongle', value: '2' }]);
  await world.ask(
    `kubectl --context ${city} patch node ${node} --subresource status --type json -p '${patch}'`,
  );
}
