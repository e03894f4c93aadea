/** What docs/by-hand.md and others say about two clusters that do not peer. */
import { follow } from './support/follow.ts';
import { readerAt } from './support/clusters.ts';
import { WITHOUT_PEERING } from './support/readings.ts';

follow(WITHOUT_PEERING, async () => readerAt([{ name: 'home' }, { name: 'foreign' }]));
