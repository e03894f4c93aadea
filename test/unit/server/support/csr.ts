import type { CertificateSigningRequest } from '../../../../src/api/wire.ts';

export function csrObject(
  name: string,
  spec: Partial<CertificateSigningRequest['spec']>,
  status?: CertificateSigningRequest['status'],
): CertificateSigningRequest {
  return {
    metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {
      request: '',
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  };
}
