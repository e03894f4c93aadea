/**
 * A pod that only says its version: whether an image can be had here, and is ours, is known before a role is stopped for it. It has
 * the account of role `cluster`, and so the same secrets to pull images with.
 */
import { LABEL_APP_INSTANCE, type ManifestOf, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { CLUSTER_ACCOUNT } from '../../api/rbac.ts';
import type { Pod } from '../../api/wire.ts';
import { checkedImage, forgeTaskPod } from '../program.ts';

export const IMAGE_CHECK_NAME = 'tributary-image-check';

export function forgeImageCheck(image: string): ManifestOf<Pod> & { metadata: { name: string } } {
  // Not of our application: nobody is to count it among the roles.
  const labels = { [LABEL_APP_INSTANCE]: IMAGE_CHECK_NAME };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: SYSTEM_NAMESPACE, name: IMAGE_CHECK_NAME, labels },
    spec: {
      ...forgeTaskPod({
        account: CLUSTER_ACCOUNT,
        labels,
        image: checkedImage(image),
        args: ['version'],
        memoryLimit: '256Mi',
      }),
      automountServiceAccountToken: false,
    },
  };
}
