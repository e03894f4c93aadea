/** What docs/by-hand.md and others say about two clusters that do not peer. */
import { follow } from './support/follow.ts';
import { readerAt } from './support/clusters.ts';
import { WITHOUT_PEERING } from './support/readings.ts';

/** As `make lab-up` makes them. */
const CLUSTERS = ['home', 'foreign'].map((name) => ({ name, networkPolicies: true }));

follow(WITHOUT_PEERING, async () => readerAt(CLUSTERS));
