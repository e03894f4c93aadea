import { TETHER_DEFAULTS, type TetherSpec } from '../../api/cluster-mode.ts';
import { sharingPolicies, type SharingPolicy } from '../../api/sharing-policy.ts';
import type { Draft } from '../../api/wire.ts';

/** The SharingPolicy by which the other cluster gets all that this one has. Made and removed with the tether. */
export const TETHER_POLICY = 'tributary-tether';

/** The highest that the kind takes. */
const HIGHEST = 1_000_000;

/** All capacity, before any policy of people: the other cluster is to decide about the whole of it. */
export function tetherPolicy(
  clusterID: string,
  { keepForSeconds = TETHER_DEFAULTS.keepForSeconds }: TetherSpec,
): Draft<SharingPolicy> {
  const { group, version, kind } = sharingPolicies;
  return {
    apiVersion: `${group}/${version}`,
    kind,
    metadata: { name: TETHER_POLICY },
    spec: {
      peers: { clusterIDs: [clusterID] },
      approval: 'Automatic',
      precedence: HIGHEST,
      sharePercent: 100,
      imagePullPolicy: 'AsAsked',
      ownTolerations: ['*'],
      onEnd: 'Keep',
      keepForSeconds,
    },
  };
}
