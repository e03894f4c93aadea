import { homePod } from '../../unit/provider/support/pods.ts';
import { OURS } from './row.ts';

/** A pod like that of a web server, as a user at home has it. */
export const HOME: ReturnType<typeof homePod> = homePod({
  metadata: {
    name: OURS,
    labels: { app: 'web', 'pod-template-hash': '5d4f', 'app.kubernetes.io/name': 'web' },
    annotations: {
      'kubectl.kubernetes.io/restartedAt': '2026-01-01T00:00:00Z',
      'karpenter.sh/do-not-disrupt': 'true',
    },
  },
  spec: {
    serviceAccountName: 'web',
    terminationGracePeriodSeconds: 30,
    tolerations: [
      {
        key: 'node.kubernetes.io/not-ready',
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: 300,
      },
      { operator: 'Exists' },
    ],
    securityContext: { fsGroup: 101 },
    volumes: [
      { name: 'site', configMap: { name: 'site' } },
      { name: 'tls', secret: { secretName: 'tls', optional: true } },
      { name: 'cache', emptyDir: { sizeLimit: '64Mi' } },
      { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
      {
        name: 'scratch',
        ephemeral: {
          volumeClaimTemplate: {
            spec: {
              accessModes: ['ReadWriteOnce'],
              storageClassName: 'lent',
              resources: { requests: { storage: '1Gi' } },
            },
          },
        },
      },
      {
        name: 'info',
        downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] },
      },
      {
        name: 'kube-api-access-x',
        projected: {
          sources: [{ serviceAccountToken: { path: 'token' } }, { configMap: { name: 'kube-root-ca.crt' } }],
        },
      },
    ],
    containers: [
      {
        name: 'nginx',
        image: 'nginx:1',
        ports: [{ containerPort: 80 }],
        env: [{ name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
        resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { memory: '128Mi' } },
        readinessProbe: { httpGet: { path: '/', port: 80 } },
        volumeMounts: [
          { name: 'kube-api-access-x', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' },
        ],
      },
    ],
  },
});
