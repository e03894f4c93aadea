/** What a cluster needs besides its components: DNS for its pods, and metrics if wanted. */
import type { Authority } from './pki.ts';
import type { KubeObject } from './kube-api.ts';
import {
  clusterRole,
  clusterRoleBinding,
  deployment,
  meta,
  NAMESPACE,
  RBAC,
  RBAC_GROUP,
  RESTRICTED,
  rule,
  serviceAccount,
} from './manifests.ts';
import { dnsAddress } from './network.ts';

const METRICS_PORT = 10250;
const METRICS_TLS_DIRECTORY = '/etc/metrics-server';

const COREFILE = `.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
      pods insecure
      fallthrough in-addr.arpa ip6.arpa
      ttl 5
    }
    cache 5
    reload 2s
}
`;

/** CoreDNS, at the tenth address of the service range. */
export function coreDns(serviceCidr: string): KubeObject[] {
  const name = 'coredns';
  const labels = { 'k8s-app': 'kube-dns' };
  return [
    serviceAccount(name),
    clusterRole('system:coredns', [
      rule([''], ['endpoints', 'services', 'pods', 'namespaces'], ['list', 'watch']),
      rule(['discovery.k8s.io'], ['endpointslices'], ['list', 'watch']),
    ]),
    clusterRoleBinding('system:coredns', 'system:coredns', name),
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: meta(name), data: { Corefile: COREFILE } },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { ...meta('kube-dns'), labels },
      spec: {
        clusterIP: dnsAddress(serviceCidr),
        selector: labels,
        ports: [
          { name: 'dns', port: 53, protocol: 'UDP' },
          { name: 'dns-tcp', port: 53, protocol: 'TCP' },
        ],
      },
    },
    deployment(name, labels, {
      serviceAccountName: name,
      dnsPolicy: 'Default',
      containers: [
        {
          name,
          image: 'lab.local/coredns:1',
          imagePullPolicy: 'Never',
          args: ['-conf', '/etc/coredns/Corefile'],
          ports: [
            { name: 'dns', containerPort: 53, protocol: 'UDP' },
            { name: 'dns-tcp', containerPort: 53, protocol: 'TCP' },
          ],
          readinessProbe: { httpGet: { path: '/ready', port: 8181 }, periodSeconds: 1 },
          livenessProbe: { httpGet: { path: '/health', port: 8080 }, initialDelaySeconds: 30 },
          securityContext: { ...RESTRICTED, capabilities: { add: ['NET_BIND_SERVICE'], drop: ['ALL'] } },
          volumeMounts: [{ name: 'config', mountPath: '/etc/coredns', readOnly: true }],
        },
      ],
      volumes: [{ name: 'config', configMap: { name } }],
    }),
  ];
}

/** metrics-server, verified in both directions: its kubelets by the cluster's CA, itself by the API server. */
export async function metricsServer(authority: Authority): Promise<KubeObject[]> {
  const name = 'metrics-server';
  const labels = { 'k8s-app': name };
  const serving = await authority.issue({ commonName: name, dns: [`${name}.${NAMESPACE}.svc`] });
  return [
    serviceAccount(name),
    ...metricsRbac(name),
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: meta(name),
      type: 'kubernetes.io/tls',
      stringData: { 'tls.crt': serving.cert, 'tls.key': serving.key },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { ...meta(name), labels },
      spec: { selector: labels, ports: [{ name: 'https', port: 443, targetPort: METRICS_PORT }] },
    },
    deployment(name, labels, metricsPod(name)),
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: 'v1beta1.metrics.k8s.io' },
      spec: {
        group: 'metrics.k8s.io',
        version: 'v1beta1',
        groupPriorityMinimum: 100,
        versionPriority: 100,
        caBundle: Buffer.from(authority.cert).toString('base64'),
        service: { name, namespace: NAMESPACE },
      },
    },
  ];
}

function metricsRbac(name: string): KubeObject[] {
  const read = ['get', 'list', 'watch'];
  const reader = clusterRole('system:aggregated-metrics-reader', [
    rule(['metrics.k8s.io'], ['pods', 'nodes'], read),
  ]);
  const aggregate = (role: string): [string, string] => [`${RBAC_GROUP}/aggregate-to-${role}`, 'true'];
  return [
    {
      ...reader,
      metadata: {
        ...reader.metadata,
        labels: Object.fromEntries(['admin', 'edit', 'view'].map(aggregate)),
      },
    },
    clusterRole('system:metrics-server', [
      rule([''], ['nodes/metrics'], ['get']),
      rule([''], ['pods', 'nodes'], read),
    ]),
    clusterRoleBinding('system:metrics-server', 'system:metrics-server', name),
    clusterRoleBinding('metrics-server:system:auth-delegator', 'system:auth-delegator', name),
    {
      apiVersion: RBAC,
      kind: 'RoleBinding',
      metadata: meta('metrics-server-auth-reader'),
      roleRef: { apiGroup: RBAC_GROUP, kind: 'Role', name: 'extension-apiserver-authentication-reader' },
      subjects: [{ kind: 'ServiceAccount', name, namespace: NAMESPACE }],
    },
  ];
}

function metricsPod(name: string): Record<string, unknown> {
  return {
    serviceAccountName: name,
    containers: [
      {
        name,
        image: 'lab.local/metrics-server:1',
        imagePullPolicy: 'Never',
        args: [
          `--secure-port=${METRICS_PORT}`,
          `--tls-cert-file=${METRICS_TLS_DIRECTORY}/tls.crt`,
          `--tls-private-key-file=${METRICS_TLS_DIRECTORY}/tls.key`,
          // The cluster's CA, which every pod is given, has signed the kubelets' certificates too.
          '--kubelet-certificate-authority=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
          '--kubelet-preferred-address-types=InternalIP',
          '--kubelet-use-node-status-port',
          '--metric-resolution=10s',
          // It must be shorter than the resolution, and the default is not.
          '--kubelet-request-timeout=5s',
        ],
        ports: [{ name: 'https', containerPort: METRICS_PORT }],
        readinessProbe: {
          httpGet: { path: '/readyz', port: 'https', scheme: 'HTTPS' },
          periodSeconds: 1,
          failureThreshold: 60,
        },
        securityContext: { ...RESTRICTED, capabilities: { drop: ['ALL'] } },
        volumeMounts: [{ name: 'tls', mountPath: METRICS_TLS_DIRECTORY, readOnly: true }],
      },
    ],
    volumes: [{ name: 'tls', secret: { secretName: name } }],
  };
}
