import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { stringify } from 'yaml';
import type { KubeApi } from '../../lab/kube-api.ts';
import type { Manifest } from '../../src/api/manifest.ts';
import {
  ANNOTATION_PEER_PREFIXES,
  ANNOTATION_RECREATED,
  ANNOTATION_RESULT,
  HOME_LEASE,
  LABEL_HOME_UID,
} from '../../src/api/names.ts';
import type { Pod } from '../../src/api/wire.ts';
import { RESULT_GATE } from '../../src/hosting/guardian/result.ts';
import { forgeHostingBase } from '../../src/hosting/base-objects.ts';
import { forgeContractTenant, type ContractTenant } from '../../src/hosting/tenants/contract-tenant.ts';
import { forgePod } from '../../src/provider/forge/pod.ts';
import { eventually } from '../support/eventually.ts';
import {
  HOSTILE_HOME_PODS,
  HOSTILE_OBJECTS,
  HOSTILE_PRIVILEGES,
  requestOf,
  type HostileRow,
} from '../support/hostile/objects.ts';
import { HOME } from '../support/hostile/home-pod.ts';
import { largestPod } from '../support/hostile/largest-pod.ts';
import { CLASSES } from '../support/hostile/classes.ts';
import { MARKS, OURS, THEIRS, aPod, objectOf, pathOf } from '../support/hostile/row.ts';
import { RightsCluster, type Answer, type Caller } from '../support/labs/rights-cluster.ts';
import { CONTEXT, homePod } from '../unit/provider/support/pods.ts';

/**
 * What a peer tries with its own credential against a tenant as lending makes it, on a real API server: each row of the
 * table is refused with the provider's reason, and nothing is left of it. No webhook runs: all of this holds without.
 */

const ROME = 'r'.repeat(26);
const PARIS = 'p'.repeat(26);
const STAGE = {
  tenant: 'tributary-rome-shop',
  forced: 'tributary-rome-hard',
  other: 'tributary-paris-shop',
  bare: 'tributary-rome-bare',
  /** Its SharingPolicy says `podSecurity: privileged`. */
  trusted: 'tributary-rome-trusted',
};

let lab: RightsCluster;
let api: KubeApi;
let peer: Caller;

const tenancyOf = (
  consumer: string,
  namespace: string,
  policy: Partial<ContractTenant['policy']> = {},
): ContractTenant => ({
  consumer,
  contract: {
    provider: 'm'.repeat(26),
    consumer,
    generation: 1,
    issued: '2026-01-01T00:00:00Z',
    resources: {},
    namespaces: [{ homeNamespace: 'shop', tenantNamespace: namespace }],
    podSecurity: 'baseline',
    keepForSeconds: 60,
    prices: {},
  },
  amounts: { cpu: '4', memory: '4Gi', pods: '10', storage: '10Gi', 'example.com/gpu': '1' },
  policy: {
    peers: { anyone: true },
    storageClasses: ['lent'],
    priorityClasses: ['quiet', 'loud'],
    ingressClasses: ['edge'],
    ingressHosts: ['peers.example.com'],
    imagePullPolicy: 'AsAsked',
    ...policy,
  },
});

const apply = async (objects: readonly object[]): Promise<void> =>
  lab.apply(objects.map((object) => stringify(object)).join('---\n'));

const applyTenancy = async (tenancy: ContractTenant): Promise<void> => {
  const { shared, tenants, kinds, account } = forgeContractTenant(tenancy);
  await apply([...account, ...shared, ...tenants.flat(), ...kinds]);
};

async function admin(method: string, path: string, body: object): Promise<void> {
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  const answer = await api.call(method, path, body, type);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
}

beforeAll(async () => {
  lab = await RightsCluster.up();
  ({ api } = lab.cluster);
  await apply([
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tributary-system' } },
    ...CLASSES,
    ...forgeHostingBase({ namespace: 'tributary-system', name: 'tributary-cluster' }),
  ]);
  await applyTenancy(tenancyOf(ROME, STAGE.tenant));
  const forced: Partial<ContractTenant['policy']> = {
    runtimeClassName: 'hardened',
    nodeSelector: { 'example.com/lends': 'yes' },
    imagePullPolicy: 'Always',
    ownTolerations: ['example.com/theirs'],
  };
  await applyTenancy(tenancyOf(ROME, STAGE.forced, forced));
  await applyTenancy(tenancyOf(PARIS, STAGE.other));
  await applyTenancy(tenancyOf(ROME, STAGE.bare, { ingressClasses: [] }));
  const trusted = tenancyOf(ROME, STAGE.trusted, { podSecurity: 'privileged' });
  await applyTenancy({ ...trusted, contract: { ...trusted.contract, podSecurity: 'privileged' } });
  await admin('PATCH', `/api/v1/namespaces/${STAGE.bare}`, {
    metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } },
  });
  const annotations = { [ANNOTATION_PEER_PREFIXES]: '100.99.0.0/16' };
  await admin('PATCH', `/api/v1/namespaces/${STAGE.tenant}`, { metadata: { annotations } });
  peer = await lab.as({ namespace: 'tributary-peers', name: ROME });
  await furnish();
});

afterAll(async () => lab?.down());

const at = (resource: string, name?: string): string => pathOf(resource, STAGE.tenant, name);

/** What is there before, and when all policies have been seen to hold. */
async function furnish(): Promise<void> {
  // Admission knows accounts before anything else: one that is not there is refused by that.
  await admin('POST', at('v1/serviceaccounts'), {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'builder' },
  });
  for (const row of HOSTILE_OBJECTS.filter(({ name }) => FORERUNNERS.has(name))) {
    const { method, path, body } = requestOf(row, STAGE);
    let last = '';
    const isRefused = async (): Promise<boolean> => {
      last = (await peer(method, `${path}?dryRun=All`, body)).body;
      return !last.includes('"uid"');
    };
    await eventually(`in force: ${row.name}`, isRefused).catch((cause: unknown) => {
      throw new Error(last, { cause });
    });
  }
  await eventually('the root certificate', async () => {
    const answer = await api.call('GET', at('v1/configmaps', 'kube-root-ca.crt'));
    return answer.status === 200;
  });
  await admin('POST', at('v1/secrets'), { apiVersion: 'v1', kind: 'Secret', metadata: { name: THEIRS } });
  const recreated = {
    name: 'recreated',
    labels: { ...MARKS, [LABEL_HOME_UID]: 'x' },
    annotations: { [ANNOTATION_RECREATED]: '{"count":1}' },
  };
  await admin('POST', at('v1/pods'), aPod('', {}, { metadata: recreated }));
  const result = {
    name: 'result',
    labels: { ...MARKS, [LABEL_HOME_UID]: 'x' },
    annotations: { [ANNOTATION_RESULT]: 'true' },
  };
  const gated = { schedulingGates: [{ name: RESULT_GATE }] };
  await admin('POST', at('v1/pods'), aPod('', gated, { metadata: result }));
  await admin('POST', at('v1/pods'), aPod('bound'));
  await admin('POST', pathOf('v1/pods', STAGE.bare), aPod(OURS));
  await eventually('a pod is on a node', async () => {
    const { body } = await api.call('GET', at('v1/pods', 'bound'));
    return (JSON.parse(body) as Pod).spec?.nodeName !== undefined;
  });
  await admin('POST', at('coordination.k8s.io/v1/leases'), {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: HOME_LEASE },
  });
}

/** One of each policy, and the quota: a policy is in force a moment after it is applied. */
const FORERUNNERS: ReadonlySet<string> = new Set([
  'unmarked',
  'scheduler',
  'claim-other-class',
  'keys',
  'external-ips',
  'our-pods',
  'path',
  'unmarked-copy',
  'finalizers',
  'cpu',
  'extended',
  'node-selector',
]);

const context = {
  ...CONTEXT,
  tenantNamespace: STAGE.tenant,
  homeApiServer: { host: '192.0.2.9', port: 6443 },
};

describe('what an honest home sends', () => {
  const made = async (method: string, path: string, body: object): Promise<Answer> => {
    const answer = await peer(method, path, body);
    const said = answer.status >= 300 ? answer.body : '';
    expect({ path, ...answer, said }).toMatchObject({
      path,
      status: method === 'POST' ? 201 : 200,
      said: '',
    });
    return answer;
  };

  test('a pod like that of a web server, as its agent forges it, is let in and may change', async () => {
    await made('POST', at('v1/pods'), forgePod(HOME, context));
    const labels = { app: 'web', track: 'canary' };
    await made('PATCH', at('v1/pods', OURS), {
      metadata: { labels, annotations: { 'tributary.dev/applied': '{}' } },
      spec: { activeDeadlineSeconds: 600 },
    });
  });

  test('what the provider forces is what is let in', async () => {
    const forced = {
      runtimeClassName: 'hardened',
      priorityClassName: 'quiet',
      nodeSelector: { 'example.com/lends': 'yes', disk: 'ssd' },
      tolerations: [{ key: 'example.com/theirs', operator: 'Exists' }],
    };
    const container = { imagePullPolicy: 'Always' };
    await made(
      'POST',
      `${pathOf('v1/pods', STAGE.forced)}?dryRun=All`,
      aPod('forced', forced, { container }),
    );
  });

  test('a pod that is as large as is permitted, which costs less than an API server lets a policy cost', async () => {
    await made('POST', at('v1/pods'), largestPod('large'));
    await made('PATCH', at('v1/pods', 'large'), { metadata: { labels: { track: 'canary' } } });
    expect(await peer('DELETE', at('v1/pods', 'large'))).toMatchObject({ status: 200 });
    // One that was placed in the meantime ends later, and not while others look at what is there.
    await eventually('the large pod is gone', async () => {
      const { status } = await api.call('GET', at('v1/pods', 'large'));
      return status === 404;
    });
  });

  test('copies, claims, the Lease of a home, Services', async () => {
    const configMap = objectOf('v1', 'ConfigMap', OURS, { data: { a: 'b' } });
    await made('POST', at('v1/configmaps'), configMap);
    await made('PUT', at('v1/configmaps', OURS), { ...configMap, data: { a: 'c' } });
    await made(
      'POST',
      at('v1/secrets'),
      objectOf('v1', 'Secret', OURS, { type: 'kubernetes.io/tls', data: { 'tls.crt': '', 'tls.key': '' } }),
    );
    await made(
      'POST',
      at('v1/services'),
      objectOf('v1', 'Service', OURS, { spec: { ports: [{ port: 80 }] } }),
    );
    await made(
      'POST',
      at('v1/persistentvolumeclaims'),
      objectOf('v1', 'PersistentVolumeClaim', OURS, {
        spec: {
          accessModes: ['ReadWriteOnce'],
          storageClassName: 'lent',
          resources: { requests: { storage: '1Gi' } },
        },
      }),
    );
    const lease = JSON.parse(
      (await peer('GET', at('coordination.k8s.io/v1/leases', HOME_LEASE))).body,
    ) as object;
    const spec = { holderIdentity: ROME, leaseDurationSeconds: 60, renewTime: '2026-01-01T00:00:00.000000Z' };
    await made('PUT', at('coordination.k8s.io/v1/leases', HOME_LEASE), { ...lease, spec });
    for (const resource of ['v1/configmaps', 'v1/secrets', 'v1/services']) {
      expect(await peer('DELETE', at(resource, OURS))).toMatchObject({ status: 200 });
    }
  });
});

describe('the table', () => {
  test('is long enough, and says each thing once', () => {
    expect(HOSTILE_OBJECTS.length).toBeGreaterThanOrEqual(48);
    expect(HOSTILE_HOME_PODS.length).toBeGreaterThanOrEqual(20);
    expect(new Set(HOSTILE_OBJECTS.map(({ name }) => name)).size).toBe(HOSTILE_OBJECTS.length);
  });

  test.each(HOSTILE_HOME_PODS.map((row) => [row.name, row] as const))(
    'from home nothing of it is lost on the way: %s',
    (_name, row) => {
      const { metadata, spec } = requestOf(row, STAGE).body as Pod;
      const home = homePod({ metadata: { name: metadata.name }, ...(spec && { spec }) });
      expect(forgePod(home, CONTEXT).spec).toMatchObject({ ...spec });
    },
  );
});

describe('what a hostile one sends', () => {
  /** Names and versions of all objects, but for what this cluster's own controllers write in between. */
  const inventory = async (): Promise<string[]> => {
    const found = await Promise.all(KINDS.map(async (resource) => listed(resource)));
    return found.flat();
  };
  let before: string[];
  beforeAll(async () => {
    before = await inventory();
  });

  test.each(
    HOSTILE_OBJECTS.filter((it) => it.harmless !== true).map((row) => [row.name, row.tries, row] as const),
  )('refused: %s, which tries %s', async (_name, _tries, row) => {
    const { method, path, body } = requestOf(row, STAGE, await versionOf(row));
    const answer = await peer(method, path, body, row.send.patch);
    const message = messageOf(answer);
    const { reason, orReason = reason } = row;
    expect(message).toContain(message.includes(orReason) ? orReason : reason);
    expect([403, 422]).toContain(answer.status);
  });

  test('of all that nothing is there, and what was there is as it was', async () => {
    expect(await inventory()).toEqual(before);
  });

  test.each(HOSTILE_OBJECTS.filter((it) => it.harmless === true).map((row) => [row.name, row] as const))(
    'let in, since it does no harm: %s',
    async (_name, row) => {
      const { method, path, body } = requestOf(row, STAGE);
      const { status, body: text } = await peer(method, path, body);
      expect({ status, text }).toMatchObject({ status: 201 });
      const made = JSON.parse(text) as { metadata: { name: string } };
      const one = `${path}/${made.metadata.name}`;
      // A pod that is placed at this very moment is deleted with a grace that was meant for one that is not: asked again.
      await eventually(`${one} is deleted`, async () => (await peer('DELETE', one)).status === 200);
    },
  );

  test.each(HOSTILE_PRIVILEGES.map((row) => [row.name, row] as const))(
    'refused where Pod Security is switched off: %s',
    async (_name, row) => {
      const { body } = requestOf(row, STAGE);
      const { status, body: text } = await peer('POST', `${pathOf('v1/pods', STAGE.bare)}?dryRun=All`, body);
      expect({ status, text }).toMatchObject({ status: 422 });
      expect(text).toMatch(
        /'tributary-tenant-pods' denied request: .*(podSecurity of the SharingPolicy|volumes of peers' pods)/u,
      );
    },
  );

  test('podSecurity: privileged lifts that level, and nothing else', async () => {
    const trial = `${pathOf('v1/pods', STAGE.trusted)}?dryRun=All`;
    for (const row of HOSTILE_PRIVILEGES) {
      const { status, body } = await peer('POST', trial, requestOf(row, STAGE).body);
      expect({ name: row.name, status, body }).toMatchObject({ status: 201 });
    }
    const others = HOSTILE_OBJECTS.filter(({ name }) => STILL_REFUSED.includes(name));
    expect(others).toHaveLength(STILL_REFUSED.length);
    for (const row of others) {
      const { status } = await peer('POST', trial, requestOf(row, STAGE).body);
      expect({ name: row.name, status }).toMatchObject({ status: 422 });
    }
  });

  test('thousands of objects: the count ends it', async () => {
    const answers: Awaited<ReturnType<typeof peer>>[] = [];
    for (let index = 0; index < 600 && answers.at(-1)?.status !== 403; index++) {
      answers.push(await peer('POST', at('v1/configmaps'), objectOf('v1', 'ConfigMap', `many-${index}`)));
    }
    expect(answers.at(-1)?.body).toContain('exceeded quota: tributary');
    // The last one was refused. A conflict would be an update of the quota that came between: then nothing was made.
    expect(answers.map(({ status }) => status).filter((status) => ![201, 409].includes(status))).toEqual([
      403,
    ]);
    const made = answers.filter(({ status }) => status === 201);
    expect(made.length).toBeLessThanOrEqual(500);
    expect(made.length).toBeGreaterThan(489);
  });
});

const STILL_REFUSED = ['node-name', 'critical', 'tolerates-all', 'nfs', 'automount', 'scheduler', 'grace'];

/** What a replacement must name. */
async function versionOf(row: HostileRow): Promise<string | undefined> {
  const { method, path } = requestOf(row, STAGE);
  if (method !== 'PUT') return undefined;
  const { status, body } = await api.call('GET', path);
  return status === 200 ? (JSON.parse(body) as Pod).metadata.resourceVersion : undefined;
}

const KINDS = [
  'v1/pods',
  'v1/configmaps',
  'v1/secrets',
  'v1/services',
  'v1/serviceaccounts',
  'v1/persistentvolumeclaims',
  'v1/resourcequotas',
  'v1/limitranges',
  'v1/endpoints',
  'apps/v1/deployments',
  'coordination.k8s.io/v1/leases',
  'discovery.k8s.io/v1/endpointslices',
  'networking.k8s.io/v1/ingresses',
  'networking.k8s.io/v1/networkpolicies',
  'rbac.authorization.k8s.io/v1/rolebindings',
];

async function listed(resource: string): Promise<string[]> {
  const namespaces = [...Object.values(STAGE), 'kube-system', 'tributary-peers'];
  const lists = await Promise.all(
    namespaces.map(async (namespace) => {
      const { body } = await api.call('GET', pathOf(resource, namespace));
      return (JSON.parse(body) as { items: Manifest[] }).items;
    }),
  );
  return lists
    .flat()
    .map(({ metadata }) => {
      const { name, namespace, uid, labels, annotations } = metadata as Pod['metadata'];
      return `${resource} ${namespace}/${name} ${uid} ${JSON.stringify([labels, annotations])}`;
    })
    .toSorted();
}

function messageOf({ body }: Answer): string {
  try {
    return (JSON.parse(body) as { message?: string }).message ?? body;
  } catch {
    return body;
  }
}
