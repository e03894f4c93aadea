import { expect, test } from '@jest/globals';
import {
  ANNOTATION_CARRIED_NAMESPACE,
  ANNOTATION_HOME_NAMESPACE,
  LABEL_HOME_UID,
} from '../../../../src/api/names.ts';
import type { Pod, PodSpec } from '../../../../src/api/wire.ts';
import { forgePod } from '../../../../src/provider/forge/pod.ts';
import { CONTEXT, homePod } from '../support/pods.ts';

/** As the agent of a device's virtual node makes a pod: of its namespace shop, over there in `tenant`. */
const first = (spec: Partial<PodSpec> = {}): Pod => {
  const containers = [{ name: 'main', image: 'web:1' }];
  const alias = { host: 'kubernetes.default.svc', port: 443, alias: '100.65.15.254' };
  const forged = forgePod(homePod({ spec: { containers, ...spec } }), { ...CONTEXT, homeApiServer: alias });
  return homePod({
    metadata: { ...forged.metadata, uid: 'between' },
    ...(forged.spec && { spec: forged.spec }),
  });
};
/** The same, placed back onto the device by the cluster between, whose API server is elsewhere. */
const second = (spec: Partial<PodSpec> = {}): ReturnType<typeof forgePod> => {
  const homeApiServer = { host: 'kubernetes.default.svc', port: 443, alias: '100.70.0.1' };
  return forgePod(first(spec), { ...CONTEXT, tenantNamespace: 'tenant-back', homeApiServer });
};

test('a pod that comes back finds the Services of its own namespace by their short names', () => {
  const { spec } = second({ dnsConfig: { searches: ['lan'] } });
  expect(spec?.dnsPolicy ?? 'ClusterFirst').toBe('ClusterFirst');
  expect(spec?.dnsConfig).toEqual({ searches: ['shop.svc.cluster.local', 'lan'] });
  expect(second({ dnsPolicy: 'Default' }).spec?.dnsConfig).toBeUndefined();
});

test('it finds the API server of its own cluster there, and not at addresses of the cluster between', () => {
  const mine = { ip: '192.0.2.1', hostnames: ['db'] };
  const { spec } = second({ hostAliases: [mine] });
  expect(first({ hostAliases: [mine] }).spec?.hostAliases).toHaveLength(2);
  expect(spec?.hostAliases).toEqual([mine]);
  expect(spec?.containers[0]?.env).toContainEqual({
    name: 'KUBERNETES_SERVICE_HOST',
    value: 'kubernetes.default.svc',
  });
});

test('files tell the namespace that its user knows', () => {
  const field = { path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } };
  const { metadata, spec } = second({ volumes: [{ name: 'me', downwardAPI: { items: [field] } }] });
  expect(metadata.labels?.[LABEL_HOME_UID]).toBe('between');
  expect(metadata.annotations).toMatchObject({
    [ANNOTATION_HOME_NAMESPACE]: 'tenant',
    [ANNOTATION_CARRIED_NAMESPACE]: 'shop',
  });
  expect(spec?.volumes?.[0]?.downwardAPI?.items?.[0]?.fieldRef?.fieldPath).toBe(
    `metadata.annotations['${ANNOTATION_CARRIED_NAMESPACE}']`,
  );
});
