/** What the documents say about a device and its company, between which only the device can dial. */
import { setContact } from '../../../lab/demo/device.ts';
import { follow } from './support/follow.ts';
import { readerAt } from './support/clusters.ts';
import { LAPTOP } from './support/readings.ts';

/** Both have the addresses that most clusters have. */
const SAME = { podCidr: '10.244.0.0/16', serviceCidr: '10.96.0.0/16' };

follow(LAPTOP, async () =>
  readerAt(
    [
      { name: 'laptop', segment: 1, ...SAME },
      { name: 'company', nodes: 2, ...SAME },
    ],
    async (lab) => setContact(lab, 'nat'),
  ),
);
