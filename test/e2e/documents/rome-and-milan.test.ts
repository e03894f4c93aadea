/** What README.md and most documents say about two clusters, from the first installation to the last removal. */
import { readerAt } from './support/clusters.ts';
import { follow } from './support/follow.ts';
import { TWO_CLUSTERS } from './support/readings.ts';

follow(TWO_CLUSTERS, async () =>
  readerAt([
    { name: 'rome', nodes: 2 },
    { name: 'milan', storage: true },
  ]),
);
