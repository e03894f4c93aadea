import { expect, test } from '@jest/globals';
import type { Manifest } from '../../../src/api/manifest.ts';
import type { PodSpec } from '../../../src/api/wire.ts';
import { forgeInstallation, keyOf } from '../../../src/deploy/installation/objects.ts';
import { forgeUninstallHook } from '../../../src/deploy/installation/uninstall-hook.ts';
import { defaultValues } from '../../../src/deploy/installation/values.ts';

const hook = (priorityClasses = true): Manifest[] =>
  forgeUninstallHook({ image: 'tributary:1', priorityClasses });

test('Helm makes all of it before a release is removed, the Job last, and removes it again', () => {
  const weights = hook().map(({ metadata: { annotations = {} } }) => {
    expect(annotations).toMatchObject({
      'helm.sh/hook': 'pre-delete',
      'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
    });
    return Number(annotations['helm.sh/hook-weight']);
  });
  expect(weights).toEqual(weights.toSorted((a, b) => a - b));
  expect(new Set(weights).size).toBe(weights.length);
  expect(hook().at(-1)?.kind).toBe('Job');
});

test('none of it is a part of an installation', () => {
  const installed = new Set(forgeInstallation({ ...defaultValues(), image: 'tributary:1' }).map(keyOf));
  expect(hook().filter((object) => installed.has(keyOf(object)))).toEqual([]);
});

test('its pod does the first half of the uninstallation, once, and needs no more than `restricted` allows', () => {
  const { spec } = hook().at(-1) as unknown as {
    spec: { backoffLimit: number; template: { spec: PodSpec } };
  };
  expect(spec.backoffLimit).toBe(0);
  const pod = spec.template.spec;
  expect(pod).toMatchObject({
    restartPolicy: 'Never',
    serviceAccountName: 'tributary-uninstall',
    priorityClassName: 'tributary',
    securityContext: { runAsNonRoot: true },
  });
  expect(pod.containers).toMatchObject([
    {
      args: ['uninstall', '--prepare', '--yes', '--image', 'tributary:1'],
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    },
  ]);
  expect(pod.containers[0]).not.toHaveProperty('readinessProbe');
});

test('of a kind that is not ours it may delete, patch or make only what it names, and namespaces of peers', () => {
  const open = hook().flatMap((object) =>
    ((object as { rules?: RuleOf[] }).rules ?? []).filter(
      ({ apiGroups, resourceNames, verbs }) =>
        !apiGroups.includes('tributary.dev') &&
        resourceNames === undefined &&
        verbs.some((verb) => !['get', 'list'].includes(verb)),
    ),
  );
  expect(open).toEqual([{ apiGroups: [''], resources: ['namespaces'], verbs: ['list', 'delete'] }]);
});

interface RuleOf {
  apiGroups: string[];
  resources: string[];
  resourceNames?: string[];
  verbs: string[];
}
