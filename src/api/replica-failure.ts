interface WithConditions {
  status?: {
    conditions?: readonly { type: string; status: string; reason?: string; message?: string }[];
  };
}

/** Why the API server lets no pod of a Deployment in, as `FailedCreate: MESSAGE`; undefined where it lets them in. No pod can tell it. */
export function replicaFailureOf(deployment: WithConditions | undefined): string | undefined {
  const failure = deployment?.status?.conditions?.find(({ type }) => type === 'ReplicaFailure');
  if (failure?.status !== 'True') return undefined;
  return [failure.reason, failure.message].filter(Boolean).join(': ');
}
