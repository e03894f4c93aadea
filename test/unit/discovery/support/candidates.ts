import type { Candidate } from '../../../../src/discovery/candidates.ts';

export const MILAN: string = 'milan'.padEnd(26, 'a');
export const ROME: string = 'rome'.padEnd(26, 'b');

export const candidateOf = (clusterID: string, more: Partial<Candidate> = {}): Candidate => ({
  clusterID,
  endpoints: ['10.1.0.1:6443'],
  protocols: [1],
  expiresAt: Infinity,
  ...more,
});
