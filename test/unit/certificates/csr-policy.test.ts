import { expect, test } from '@jest/globals';

import type { CertificateSigningRequest } from '../../../src/api/wire.ts';
import { type CsrPolicyInput, decideCsr, type RequestingPod } from '../../../src/certificates/csr-policy.ts';
import { createSigningRequest, parseSigningRequest } from '../../../src/certificates/signing-request.ts';
import { type CertificateSubject, generateKey } from '../../../src/certificates/self-signed.ts';
import { csrObject } from '../server/support/csr.ts';

const USERNAME = 'system:serviceaccount:tributary:agent-milan';
const keys = await generateKey();
const good: CertificateSubject = {
  commonName: 'system:node:milan',
  organizations: ['system:nodes'],
  dnsNames: ['milan'],
  ips: ['10.0.0.7'],
};
const pod: RequestingPod = { name: 'agent-1', uid: 'u-1', ips: ['10.0.0.7', 'fd00::7'], nodeName: 'milan' };
const extra = {
  'authentication.kubernetes.io/pod-name': ['agent-1'],
  'authentication.kubernetes.io/pod-uid': ['u-1'],
};

interface Change {
  subject?: Partial<CertificateSubject>;
  spec?: Partial<CertificateSigningRequest['spec']>;
  status?: CertificateSigningRequest['status'];
  pod?: RequestingPod | null;
  nodes?: CsrPolicyInput['nodes'];
}

async function decide(change: Change): Promise<string> {
  const pem = await createSigningRequest({ ...good, ...change.subject }, keys);
  const request = Buffer.from(pem).toString('base64');
  const csr = csrObject('csr-1', { request, username: USERNAME, extra, ...change.spec }, change.status);
  const nodes = change.nodes ?? [
    { nodeName: 'milan', username: USERNAME },
    { nodeName: 'turin', username: USERNAME },
    { nodeName: 'rome', username: 'system:serviceaccount:tributary:agent-rome' },
  ];
  const requester = change.pod === null ? undefined : (change.pod ?? pod);
  const { action, reason } = await decideCsr({ csr, parse: parseSigningRequest, nodes, pod: requester });
  return `${action}: ${reason}`;
}

const SIGNATURE_AND_SERVER = ['digital signature', 'server auth'];

test.each<[string, Change, string]>([
  ['a sound request', {}, 'approve: serving certificate of system:node:milan for pod agent-1'],
  ['with key encipherment', { spec: { usages: [...SIGNATURE_AND_SERVER, 'key encipherment'] } }, 'approve'],
  ['an IPv6 address in another spelling', { subject: { ips: ['fd00:0::7'] } }, 'approve'],
  ['no DNS name', { subject: { dnsNames: [] } }, 'approve'],
  [
    'another signer',
    { spec: { signerName: 'kubernetes.io/kube-apiserver-client' } },
    'ignore: another signer',
  ],
  ['an approved one', { status: { conditions: [{ type: 'Approved', status: 'True' }] } }, 'ignore: settled'],
  ['a failed one', { status: { conditions: [{ type: 'Failed', status: 'True' }] } }, 'ignore: settled'],
  ['an issued one', { status: { certificate: 'eA==' } }, 'ignore: settled'],
  ['a real kubelet', { spec: { username: 'system:node:worker-1' } }, 'ignore: the requester is no agent'],
  ['an administrator', { spec: { username: 'admin' } }, 'ignore: the requester is no agent'],
  ['no node known', { nodes: [] }, 'ignore: the requester is no agent'],
  ['no pod known', { pod: null }, 'ignore: the requesting pod is not known yet'],
  ['a pod without address', { pod: { ...pod, ips: [] } }, 'ignore: the requesting pod has no address yet'],
  ['another pod', { pod: { ...pod, uid: 'u-2' } }, 'ignore: the credential is bound to another pod'],
  ['an unbound token', { spec: { extra: {} } }, 'ignore: the credential is bound to another pod'],
  [
    'two pod names',
    { spec: { extra: { ...extra, 'authentication.kubernetes.io/pod-name': ['agent-1', 'b'] } } },
    'ignore: the credential',
  ],
  ['a client usage', { spec: { usages: [...SIGNATURE_AND_SERVER, 'client auth'] } }, 'deny: a usage beyond'],
  [
    'a client usage instead',
    { spec: { usages: ['digital signature', 'client auth'] } },
    'deny: usage "server auth" is missing',
  ],
  ['no usage', { spec: { usages: [] } }, 'deny: usage "digital signature" is missing'],
  ['another group', { subject: { organizations: ['system:masters'] } }, 'deny: the organization'],
  [
    'one more group',
    { subject: { organizations: ['system:nodes', 'system:masters'] } },
    'deny: the organization',
  ],
  ['no group', { subject: { organizations: [] } }, 'deny: the organization'],
  [
    'a node of another agent',
    { subject: { commonName: 'system:node:rome', dnsNames: [] } },
    'deny: the common name',
  ],
  ['a real node', { subject: { commonName: 'system:node:worker-1' } }, 'deny: the common name'],
  ['no node at all', { subject: { commonName: 'milan' } }, 'deny: the common name'],
  [
    'a node of the same account, another pod',
    { subject: { commonName: 'system:node:turin', dnsNames: [] } },
    'deny: the requesting pod is the agent of another node',
  ],
  [
    'a foreign address',
    { subject: { ips: ['10.0.0.7', '10.96.0.1'] } },
    'deny: 10.96.0.1 is not an address of the requesting pod',
  ],
  ['no address', { subject: { ips: [] } }, 'deny: no IP address'],
  ['a foreign DNS name', { subject: { dnsNames: ['milan', 'kubernetes.default.svc'] } }, 'deny: a DNS name'],
  ['a wildcard', { subject: { dnsNames: ['*'] } }, 'deny: a DNS name'],
  ['nonsense', { spec: { request: 'eA==' } }, 'deny: the request cannot be parsed'],
])('%s', async (_name, change, expected) => {
  expect((await decide(change)).slice(0, expected.length)).toBe(expected);
});
