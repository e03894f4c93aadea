/** What people apply for the `gateway` role: one pod on the host network, where multicast is. */
import { APP_NAME, LABEL_APP_INSTANCE, LABEL_APP_NAME, type Manifest } from '../api/manifest.ts';
import { forgeDeployment } from '../provider/agent/manifests-deployment.ts';
import { SYSTEM_NAMESPACE, checkedImage } from '../provider/agent/manifests.ts';
import { forgePlaceGrants } from './manifests-cluster.ts';
import { GATEWAY_NAME, GATEWAY_RIGHTS } from './rights-cluster.ts';

/** Apart from tributary-system: who may make pods here may make them on the host network. */
export const NETWORK_NAMESPACE = 'tributary-network';
/** On the host, where 8080 is often taken. */
const GATEWAY_OPS_PORT = 7480;

export interface GatewayOptions {
  image: string;
  priorityClassName?: string;
  /** Further arguments of `tributary gateway`. */
  args?: readonly string[];
}

/** In the order in which they must be applied; after those of the `cluster` role. */
export function forgeGateway(options: GatewayOptions): Manifest[] {
  const { args = [], ...program } = options;
  const labels = { [LABEL_APP_NAME]: APP_NAME, [LABEL_APP_INSTANCE]: GATEWAY_NAME };
  const account = { namespace: NETWORK_NAMESPACE, name: GATEWAY_NAME };
  return [
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: {
        name: NETWORK_NAMESPACE,
        // The host network is beyond `baseline`; nothing else of `privileged` is used.
        labels: { [LABEL_APP_NAME]: APP_NAME, 'pod-security.kubernetes.io/enforce': 'privileged' },
      },
    },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...account, labels } },
    ...forgePlaceGrants({ name: GATEWAY_NAME, labels, account }, GATEWAY_RIGHTS),
    forgeDeployment({
      ...program,
      image: checkedImage(options.image),
      account,
      labels,
      args: [
        'gateway',
        '--ops-port',
        String(GATEWAY_OPS_PORT),
        '--system-namespace',
        SYSTEM_NAMESPACE,
        ...args,
      ],
      ports: { ops: GATEWAY_OPS_PORT },
      memoryLimit: '256Mi',
      hostNetwork: true,
    }),
  ];
}
