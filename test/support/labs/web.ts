import type { KubeObject } from '../../../lab/kube-api.ts';
import { LABEL_VIRTUAL_NODE, TAINT_VIRTUAL_NODE } from '../../../src/api/names.ts';
import type { PodSpec } from '../../../src/api/wire.ts';
import { NODE } from './agent-lab.ts';

/** Of a pod on the virtual node of an AgentLab. */
export const onNode: Pick<PodSpec, 'nodeSelector' | 'tolerations' | 'terminationGracePeriodSeconds'> = {
  nodeSelector: { [LABEL_VIRTUAL_NODE]: NODE },
  tolerations: [{ key: TAINT_VIRTUAL_NODE, operator: 'Exists' }],
  terminationGracePeriodSeconds: 1,
};

/** The Deployment `web` in `shop`, on that node. */
export const webDeployment = (image: string, replicas: number): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'shop' },
  spec: {
    replicas,
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: { ...onNode, containers: [{ name: 'main', image }] },
    },
  },
});
