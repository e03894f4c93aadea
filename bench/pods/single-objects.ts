/** Objects of everyday size of the kinds that travel by themselves, in two states that differ in a mark. */
import { PROVIDER_ID } from '../../test/support/labs/services-lab.ts';
import {
  ANNOTATION_HOME_NAMESPACE,
  LABEL_MANAGED_BY,
  LABEL_SLICE_MANAGED_BY,
  SLICE_MANAGER,
} from '../../src/api/names.ts';
import { configMaps, endpointSlices, type ResourceType, secrets, services } from '../../src/api/resources.ts';
import type { ConfigMap, EndpointSlice, KubeObject, Secret, Service } from '../../src/api/wire.ts';

export interface SingleKind {
  readonly name: 'ConfigMap' | 'Secret' | 'Service' | 'EndpointSlice';
  readonly type: ResourceType<KubeObject>;
  /** Of that name, with that mark. */
  readonly make: (metadata: { name: string; namespace: string }, mark: number) => KubeObject;
  /** Undefined of an object that has none. */
  readonly markOf: (object: KubeObject) => number | undefined;
  readonly remoteName: (name: string) => string;
}

/** The same object as somebody from home may write it into a tenant. */
export function asCopy(object: KubeObject, namespace: string): KubeObject {
  const { metadata, ...rest } = object;
  const slices = 'endpoints' in rest ? { [LABEL_SLICE_MANAGED_BY]: SLICE_MANAGER } : {};
  const labels = { ...metadata.labels, [LABEL_MANAGED_BY]: PROVIDER_ID, ...slices };
  const annotations = { [ANNOTATION_HOME_NAMESPACE]: namespace };
  const copy = { ...rest, metadata: { ...metadata, labels, annotations } };
  if (!('endpoints' in copy)) return copy;
  const endpoints = (copy as unknown as EndpointSlice).endpoints?.map((endpoint) => ({
    ...endpoint,
    addresses: endpoint.addresses.map((address) => address.replace('10.1.', '100.99.')),
  }));
  return { ...copy, endpoints } as KubeObject;
}

const TEXT = 'x'.repeat(1024);
const ENDPOINTS = 100;
/** Slices are of this Service, which is there before. */
export const SERVICE = 'bench';
/** Ports bear the mark, from here on. */
const PORT = 8000;

const same = (name: string): string => name;
type Meta = KubeObject['metadata'];

export const SINGLE_KINDS: readonly SingleKind[] = [
  {
    name: 'ConfigMap',
    type: configMaps,
    make: (metadata, mark): ConfigMap => ({
      metadata: metadata as Meta,
      data: { mark: String(mark), text: TEXT },
    }),
    markOf: (object) => numberOf((object as ConfigMap).data?.['mark']),
    remoteName: same,
  },
  {
    name: 'Secret',
    type: secrets,
    make: (metadata, mark): Secret => ({
      metadata: metadata as Meta,
      type: 'Opaque',
      data: { mark: base64(String(mark)), text: base64(TEXT) },
    }),
    markOf: (object) => {
      const encoded = (object as Secret).data?.['mark'];
      return encoded === undefined ? undefined : numberOf(Buffer.from(encoded, 'base64').toString());
    },
    remoteName: same,
  },
  {
    name: 'Service',
    type: services,
    make: service,
    markOf: (object) => marked((object as Service).spec?.ports?.[0]?.port),
    remoteName: same,
  },
  {
    name: 'EndpointSlice',
    type: endpointSlices,
    make: (metadata, mark): EndpointSlice => ({
      metadata: {
        ...(metadata as Meta),
        labels: {
          'kubernetes.io/service-name': SERVICE,
          'endpointslice.kubernetes.io/managed-by': 'a-person',
        },
      },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: PORT + mark, protocol: 'TCP' }],
      endpoints: Array.from({ length: ENDPOINTS }, (_, at) => ({
        addresses: [`10.1.200.${at + 1}`],
        conditions: { ready: true, serving: true, terminating: false },
      })),
    }),
    markOf: (object) => marked((object as EndpointSlice).ports?.[0]?.port ?? undefined),
    remoteName: (name) => `tributary-${name}`,
  },
];

/** No controller makes slices for it. */
export function service(metadata: { name: string; namespace: string }, mark: number): Service {
  return {
    metadata: metadata as Meta,
    spec: { ports: [{ name: 'http', port: PORT + mark, protocol: 'TCP' }] },
  };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const numberOf = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Number(text);
const marked = (port: number | undefined): number | undefined =>
  port === undefined ? undefined : port - PORT;
