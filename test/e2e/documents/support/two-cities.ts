/** What documents take for granted of rome and milan. */
import { given, type GivenAct, until, type UntilAct } from './reading.ts';

/** The ClusterID of a cluster, in a shell. */
export const idOf = (city: string): string =>
  `$(tributary --context ${city} id -o json | grep -oE '"[a-z2-7]{26}"' | tr -d '"')`;

/** Where it can be dialled, in a shell. */
export const endpointOf = (city: string): string =>
  `$(tributary --context ${city} id -o json | grep -oE '[0-9.]+:[0-9]+' | head -1)`;

/** The name of the ForeignCluster by which one knows the other, in a shell. */
export const knownAs = (city: string, other: string): string =>
  `$(kubectl --context ${city} get foreignclusters --no-headers | awk '$2 == "${other}" { print $1 }')`;

export const PEER: GivenAct = given('tributary peer --context rome --to-context milan');

/** The peering ends, and nobody has decided anything. */
export const STRANGERS: readonly GivenAct[] = [
  given('tributary --context rome unpeer milan --delete-volumes'),
  ...['rome', 'milan'].map((city) =>
    given(`kubectl --context ${city} delete sharingpolicies,acceptancepolicies,foreignclusters --all`),
  ),
];

/** They see each other on the LAN. */
export const SEEN: UntilAct = until('kubectl --context rome get foreignclusters', / milan /);

export const OFFLOADED: readonly (GivenAct | UntilAct)[] = [
  given(
    'kubectl --context rome create namespace shop --dry-run=client -o yaml | kubectl --context rome apply -f -',
  ),
  // milan gives the namespace as soon as one of an earlier peering has ended.
  until('tributary --context rome offload shop', /^milan +\S+ +Ready /m),
];
