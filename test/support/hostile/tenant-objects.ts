/** What a peer may try to bring into its tenant. */
import { LABEL_MANAGED_BY } from '../../../src/api/names.ts';

export const crd = (plural: string, kind: string): object => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.shop.example` },
  spec: {
    group: 'shop.example',
    scope: 'Namespaced',
    names: { plural, singular: kind.toLowerCase(), kind },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
          },
        },
      },
    ],
  },
});

/** As people let the `cluster` role pass on the rights to one kind. */
export const aggregated = (resource: string): object => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: `lend-${resource}`, labels: { 'tributary.dev/aggregate-to-lending': 'true' } },
  rules: [
    {
      apiGroups: ['shop.example'],
      resources: [resource],
      verbs: ['list', 'watch', 'create', 'update', 'delete'],
    },
  ],
});

interface Rule {
  host: string;
  http: { paths: { path: string; pathType: string; backend: object }[] };
}

export const RULE: Rule = {
  host: 'web.peers.example.com',
  http: {
    paths: [
      {
        path: '/api/v1',
        pathType: 'Prefix',
        backend: { service: { name: 'web', port: { number: 80 } } },
      },
    ],
  },
};
const SPEC = {
  ingressClassName: 'edge',
  rules: [RULE],
  tls: [{ hosts: ['web.peers.example.com'], secretName: 'web-tls' }],
};
export const ingress = ({ metadata = {}, spec = {} }: { metadata?: object; spec?: object }): object => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { name: 'web', labels: { [LABEL_MANAGED_BY]: 'milan' }, ...metadata },
  spec: { ...SPEC, ...spec },
});
export const withPath = (path: object): object => ({
  spec: { rules: [{ ...RULE, http: { paths: [{ ...RULE.http.paths[0], ...path }] } }] },
});
export const withHost = (host: string | undefined): object => {
  const { host: _host, ...rule } = RULE;
  return { spec: { rules: [{ ...rule, ...(host !== undefined && { host }) }], tls: [] } };
};
export const annotated = (key: string, value: string): object => ({
  metadata: { annotations: { [key]: value } },
});
