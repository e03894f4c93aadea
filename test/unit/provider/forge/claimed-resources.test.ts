import { describe, expect, test } from '@jest/globals';
import type { Pod, PodStatus } from '../../../../src/api/wire.ts';
import { forgeStatus } from '../../../../src/provider/forge/status.ts';
import { CONTEXT, homePod, remotePod, RUNNING } from '../support/pods.ts';

const NOW = '2026-01-01T00:01:00Z';
const shown = (home: Pod, status: PodStatus): PodStatus =>
  forgeStatus(home, remotePod(home, { status }), CONTEXT, NOW);
const container = {
  name: 'main',
  image: 'web:1',
  imageID: 'sha256:1',
  ready: true,
  restartCount: 3,
  state: {},
  lastState: {},
};

describe('resources', () => {
  const there = {
    ...container,
    allocatedResources: { cpu: '1', memory: '128Mi' },
    resources: { requests: { cpu: '1', memory: '128Mi', 'a.com/gpu': '1' }, limits: { cpu: '2' } },
  };
  const shownOf = (resources: object): object | undefined => {
    const home = homePod({ spec: { containers: [{ name: 'main', image: 'web:1', resources }] } });
    return shown(home, { ...RUNNING, containerStatuses: [there] }).containerStatuses?.[0];
  };

  test('requests that the provider’s defaults have set are not the pod’s', () => {
    expect(shownOf({ requests: { cpu: '1' } })).toMatchObject({
      allocatedResources: { cpu: '1' },
      resources: { requests: { cpu: '1' } },
    });
    const first = shownOf({ requests: { cpu: '1' } }) as { resources?: object };
    expect(first.resources).toEqual({ requests: { cpu: '1' } });
    expect(shownOf({})).not.toHaveProperty('allocatedResources');
  });

  test('no more than home asks for or has shown before: quotas at home count what is shown', () => {
    const resources = { requests: { cpu: '500m', memory: '64Mi' }, limits: { cpu: '1' } };
    const asked = { name: 'main', image: 'web:1', resources };
    const much = { cpu: '1E', memory: 'much', 'a.com/gpu': '9' };
    const claim = {
      ...container,
      allocatedResources: much,
      resources: { requests: much, limits: { cpu: '1E', memory: '1E' } },
    };
    const status = {
      ...RUNNING,
      containerStatuses: [claim],
      allocatedResources: much,
      resources: { requests: much },
    };
    const bounded = { cpu: '500m' };
    const of = (pod: Pod): PodStatus => shown(pod, status);
    const first = of(homePod({ spec: { containers: [asked] } }));
    expect(first.containerStatuses?.[0]).toMatchObject({
      allocatedResources: bounded,
      resources: { requests: bounded, limits: { cpu: '1' } },
    });
    expect(first.containerStatuses?.[0]?.allocatedResources).toEqual(bounded);
    expect(first).not.toHaveProperty('allocatedResources');
    expect((first as { resources?: object }).resources).toEqual({});
  });

  test('a pod that is made smaller shows what it has, until it has less', () => {
    const has = { ...container, allocatedResources: { cpu: '2' }, resources: { requests: { cpu: '2' } } };
    const home = homePod({
      spec: { containers: [{ name: 'main', image: 'web:1', resources: { requests: { cpu: '1' } } }] },
      status: { ...RUNNING, containerStatuses: [has] },
    });
    expect(shown(home, { ...RUNNING, containerStatuses: [has] }).containerStatuses?.[0]).toMatchObject(has);
  });

  test('requests that a limit implies are', () => {
    expect(shownOf({ limits: { memory: '128Mi' } })).toMatchObject({
      allocatedResources: { memory: '128Mi' },
    });
  });
});
