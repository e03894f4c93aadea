import { forgePolicy, type PolicyPair, writes } from '../../api/fence.ts';

/** Of peers, in a warning: kubectl cuts long ones. */
const MOST_NAMED = 5;
const PEERS = 'oldObject.?status.?peers.orValue([])';
/** CEL: the first few. API servers of Kubernetes 1.34 cannot slice a list. */
const NAMED = Array.from({ length: MOST_NAMED }, (_, index) => `${PEERS}[${index}]`).join(', ');
const GRACE = '--drain-seconds of the role cluster (300 s unless set)';

/**
 * The API server warns whoever deletes a SharingPolicy, or changes whom it selects, while peers run pods under it. Nothing is
 * refused: the policy's owner may do so, and has the grace time to think again.
 */
export function forgeEndWarning(): PolicyPair {
  const [policy, binding] = forgePolicy('tributary-sharing-end', {
    failurePolicy: 'Ignore',
    matchConstraints: { resourceRules: [writes('tributary.dev', ['sharingpolicies'], 'DELETE', 'UPDATE')] },
    matchConditions: [
      { name: 'is-used', expression: `${PEERS}.size() > 0` },
      {
        name: 'may-end',
        expression: "request.operation == 'DELETE' || object.spec.peers != oldObject.spec.peers",
      },
    ],
    variables: [
      {
        name: 'who',
        expression:
          `string(${PEERS}.size()) + ' peer(s) (' + (${PEERS}.size() > ${MOST_NAMED} ? [${NAMED}] : ${PEERS}).join(', ') + ` +
          `(${PEERS}.size() > ${MOST_NAMED} ? ', ...)' : ')')`,
      },
      {
        name: 'what',
        expression:
          "request.operation == 'DELETE' ? 'SharingPolicy ' + oldObject.metadata.name + ' is in use by ' + variables.who : " +
          "'SharingPolicy ' + oldObject.metadata.name + ' changes whom it selects, and is in use by ' + variables.who",
      },
    ],
    validations: [
      {
        expression: 'false',
        message: 'peers that no SharingPolicy selects any more lose their pods here',
        messageExpression:
          `'ALL PODS of each peer that no SharingPolicy selects any more WILL BE ENDED: ' + variables.what + '. They get ${GRACE} to move; ` +
          `apply the policy again to keep them; kubectl get peeringrequests shows when they end'`,
        reason: 'Invalid',
      },
    ],
  });
  return [policy, { ...binding, spec: { ...binding.spec, validationActions: ['Warn'] } }];
}
