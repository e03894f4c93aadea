import { certificateSigningRequests } from '../api/resources.ts';
import type { CertificateSigningRequest } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';

/** Writes a verdict, by the version that was judged: a request cannot be changed under it. */
export async function settleRequest(
  client: KubeClient,
  csr: CertificateSigningRequest,
  { type, message, nowMs }: { type: 'Approved' | 'Denied'; message: string; nowMs: number },
  signal: AbortSignal,
): Promise<void> {
  const lastUpdateTime = new Date(nowMs).toISOString();
  const condition = { type, status: 'True', reason: 'TributaryPolicy', message, lastUpdateTime };
  const conditions = [...(csr.status?.conditions ?? []), condition];
  const settled = { ...csr, status: { ...csr.status, conditions } };
  await client.replace(certificateSigningRequests, settled, { subresource: 'approval', signal });
}
