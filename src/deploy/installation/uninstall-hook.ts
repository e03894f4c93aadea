/**
 * What Helm does before it removes a release: `tributary uninstall --prepare`, as a Job. Helm alone would delete the roles while
 * objects still wait for them. All of it is made when a release is removed, with the rights of whoever removes it, and goes with
 * the Job: no account with these rights is in a cluster that runs. `tributary uninstall` does not need it.
 */
import { forgeFence, isAccount, writes } from '../../api/fence.ts';
import { type Manifest, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import type { AccountRef } from '../../api/rbac.ts';
import { isTenant } from '../../hosting/fences.ts';
import { forgePlaceGrants } from '../cluster.ts';
import { checkedImage, forgeTaskPod, labelsOf } from '../program.ts';
import { UNINSTALL_RIGHTS } from '../rights/uninstall.ts';
import { PRIORITY_CLASS } from './extras.ts';
import { INSTALLATION_LABELS } from './objects.ts';
import type { InstallValues } from './values.ts';

export const UNINSTALL_NAME = 'tributary-uninstall';
export const UNINSTALL_ACCOUNT: AccountRef = { namespace: SYSTEM_NAMESPACE, name: UNINSTALL_NAME };

const LABELS = labelsOf(UNINSTALL_NAME);

type HookValues = Pick<InstallValues, 'image' | 'priorityClasses'>;

/** In the order in which Helm makes them, one after the other. */
export function forgeUninstallHook(values: HookValues): Manifest[] {
  const labels = { ...LABELS, ...INSTALLATION_LABELS };
  const account = UNINSTALL_ACCOUNT;
  const objects: Manifest[] = [
    ...forgeFence({
      name: UNINSTALL_NAME,
      labels,
      user: isAccount(account),
      rules: [writes('', ['namespaces'], 'DELETE')],
      validations: [
        [isTenant('oldObject.metadata.?labels.orValue({})'), 'only namespaces of peers may be deleted'],
      ],
    }),
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...account, labels } },
    ...forgePlaceGrants({ name: UNINSTALL_NAME, labels, account }, UNINSTALL_RIGHTS),
    forgeJob(values, labels),
  ];
  return objects.map((object, index) => asHook(object, index - objects.length + 1));
}

const forgeJob = (
  { image, priorityClasses }: HookValues,
  labels: Record<string, string>,
): Manifest & { spec: object } => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { ...UNINSTALL_ACCOUNT, labels },
  spec: {
    // What it refuses, it would refuse again; and a person may repeat it at any time.
    backoffLimit: 0,
    template: {
      metadata: { labels: LABELS },
      spec: forgeTaskPod({
        account: UNINSTALL_ACCOUNT,
        labels: LABELS,
        image: checkedImage(image),
        args: ['uninstall', '--prepare', '--yes', '--image', image],
        memoryLimit: '256Mi',
        ...(priorityClasses && { priorityClassName: PRIORITY_CLASS }),
      }),
    },
  },
});

/** Helm makes those with a smaller weight first. A Job that has failed stays, so that its log can be read, without its account. */
const asHook = (object: Manifest, weight: number): Manifest => ({
  ...object,
  metadata: {
    ...object.metadata,
    annotations: {
      'helm.sh/hook': 'pre-delete',
      'helm.sh/hook-weight': String(weight),
      'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
      // Helm 3.18 and newer print them.
      ...(object.kind === 'Job' && { 'helm.sh/hook-output-log-policy': 'hook-succeeded,hook-failed' }),
    },
  },
});
