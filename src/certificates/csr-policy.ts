import type { CertificateSigningRequest } from '../api/wire.ts';
import { KUBELET_SERVING_SIGNER, type ParsedRequest } from './signing-request.ts';
import { isSameIp } from './self-signed.ts';

/** A virtual node and the user that its agent is. */
export interface ServedNode {
  nodeName: string;
  /** `system:serviceaccount:<namespace>:<name>`. */
  username: string;
}

/** The agent's pod that sent a request. */
export interface RequestingPod {
  name: string;
  uid: string;
  /** `status.podIPs`, or the host's for pods on its network. */
  ips: string[];
  /** Node that this pod is the agent of, where its labels say so. */
  nodeName?: string;
}

export interface CsrPolicyInput {
  csr: CertificateSigningRequest;
  /** The request in PEM, parsed; throws for what it does not understand. */
  parse: (pem: string) => Promise<ParsedRequest>;
  nodes: readonly ServedNode[];
  pod: RequestingPod | undefined;
}

export type CsrDecision =
  | { action: 'approve'; reason: string }
  /** The request is ours and can never be right. */
  | { action: 'deny'; reason: string }
  /** The request is not ours, is settled, or cannot be judged yet. */
  | { action: 'ignore'; reason: string };

export const EXTRA_POD_NAME: string = 'authentication.kubernetes.io/pod-name';
export const EXTRA_POD_UID: string = 'authentication.kubernetes.io/pod-uid';

const ignore = (reason: string): CsrDecision => ({ action: 'ignore', reason });
const deny = (reason: string): CsrDecision => ({ action: 'deny', reason });

/**
 * Whether an agent gets the serving certificate it asks for. It may have one for the node that it serves and the
 * addresses that its own pod has, nothing else: with more it could pose as another kubelet to the API server.
 * Requests of others are left to those who know them.
 */
export async function decideCsr({ csr, parse, nodes, pod }: CsrPolicyInput): Promise<CsrDecision> {
  const { spec } = csr;
  const own = nodes.filter(({ username }) => username === spec.username);
  const reason = notToJudge(csr, own.length, pod);
  if (reason !== undefined || pod === undefined) return ignore(reason ?? 'no pod');
  const wrong = wrongUsages(spec.usages ?? []);
  if (wrong !== undefined) return deny(wrong);
  let request: ParsedRequest;
  try {
    request = await parse(Buffer.from(spec.request, 'base64').toString('utf8'));
  } catch {
    return deny('the request cannot be parsed, or its signature is wrong');
  }
  const fault = wrongSubject(request, own, pod) ?? wrongNames(request, pod);
  if (fault !== undefined) return deny(fault);
  return { action: 'approve', reason: `serving certificate of ${request.commonName} for pod ${pod.name}` };
}

/** Why a request is none of ours, is settled, or must wait; undefined when it is to be judged. */
function notToJudge(
  { spec, status }: CertificateSigningRequest,
  ownNodes: number,
  pod: RequestingPod | undefined,
): string | undefined {
  if (spec.signerName !== KUBELET_SERVING_SIGNER) return 'another signer';
  if ((status?.conditions ?? []).length > 0 || status?.certificate !== undefined) return 'settled';
  if (ownNodes === 0) return 'the requester is no agent of a virtual node';
  if (pod === undefined) return 'the requesting pod is not known yet';
  if (!namesPod(spec.extra, pod)) return 'the credential is bound to another pod';
  return pod.ips.length === 0 ? 'the requesting pod has no address yet' : undefined;
}

/** The API server writes these from a token that is bound to a pod; nobody else can. */
function namesPod(extra: Record<string, string[]> | undefined, pod: RequestingPod): boolean {
  const only = (key: string, value: string): boolean => extra?.[key]?.length === 1 && extra[key][0] === value;
  return only(EXTRA_POD_NAME, pod.name) && only(EXTRA_POD_UID, pod.uid);
}

function wrongUsages(usages: readonly string[]): string | undefined {
  const given = new Set(usages);
  const missing = ['digital signature', 'server auth'].find((usage) => !given.has(usage));
  if (missing !== undefined) return `usage "${missing}" is missing`;
  const optional = given.has('key encipherment') ? 3 : 2;
  return given.size > optional ? 'a usage beyond those of a server was asked for' : undefined;
}

function wrongSubject(
  request: ParsedRequest,
  own: readonly ServedNode[],
  pod: RequestingPod,
): string | undefined {
  if (request.other.length > 0) return `not permitted: ${request.other.join(', ')}`;
  if (request.organizations.length !== 1 || request.organizations[0] !== 'system:nodes') {
    return 'the organization must be system:nodes and nothing else';
  }
  const node = own.find(({ nodeName }) => request.commonName === `system:node:${nodeName}`);
  if (node === undefined) return 'the common name is not that of a node which the requester serves';
  if (pod.nodeName !== undefined && pod.nodeName !== node.nodeName) {
    return 'the requesting pod is the agent of another node';
  }
  return undefined;
}

function wrongNames({ commonName, dnsNames, ips }: ParsedRequest, pod: RequestingPod): string | undefined {
  const nodeName = commonName.slice('system:node:'.length);
  if (dnsNames.some((name) => name !== nodeName)) return 'a DNS name is not the name of the node';
  if (ips.length === 0) return 'no IP address was asked for';
  const foreign = ips.find((ip) => !pod.ips.some((own) => isSameIp(own, ip)));
  return foreign === undefined ? undefined : `${foreign} is not an address of the requesting pod`;
}
